// What Sphinx's search finds, in order: what users read, and then what is about the inside of Heddle.
var Scorer = {
  // Sphinx's own: a word of a title, a part of one, a word of the text, a part of one.
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {},
  objPrioDefault: 0,
  score: ([page, , , , score]) => {
    const isInside = /^(ARCHITECTURE|CHANGELOG|CONTRIBUTING|docs\/(decisions|internals)\/|packaging\/|tests\/README)/;
    return isInside.test(page) ? score - 100 : score;
  },
};
