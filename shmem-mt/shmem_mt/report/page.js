/* Counts the charts that plotly has really drawn and the errors of any script, where a test can read them. */
(function () {
    function report() {
        var drawn = 0;
        document.querySelectorAll(".chart .js-plotly-plot").forEach(function (plot) {
            if (plot.querySelector(".scatterlayer .trace path")) drawn += 1;
        });
        document.body.dataset.chartsDrawn = drawn;
        document.body.dataset.scriptErrors = shmemMtErrors.join(" | ");
        return drawn;
    }
    var wanted = Number(document.body.dataset.chartsWanted);
    var tries = 0;
    (function poll() {
        if (report() < wanted && ++tries < 200) setTimeout(poll, 50);
    })();
})();
