/* Draws the charts one by one, so that the page stays alive meanwhile, and leaves the number of those that Vega has
   really drawn and the errors of any script where a test can read them. */
(async function () {
    var drawn = 0;
    for (const chart of document.querySelectorAll(".chart")) {
        const panels = [...chart.querySelectorAll(".panel")];
        try {
            const specifications = JSON.parse(chart.querySelector("script").textContent);
            for (const [number, panel] of panels.entries())
                await vegaEmbed(panel, specifications[number], {mode: "vega-lite", renderer: "svg", actions: false});
        } catch (error) {
            shmemMtErrors.push(String(error));
        }
        drawn += panels.every(panel => panel.querySelector(".role-mark path[d]"));
        document.body.dataset.chartsDrawn = drawn;
        await new Promise(resolve => setTimeout(resolve));
    }
    document.body.dataset.scriptErrors = shmemMtErrors.join(" | ");
})();
