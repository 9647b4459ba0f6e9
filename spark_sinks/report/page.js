
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const paper = 640;

  // Beside a chart on a telephone there is no room for a long name.
  function fitted(layout, width) {
    const copy = structuredClone(layout);
    if (width < 500 && copy.yaxis.ticktext) {
      copy.yaxis.ticktext = copy.yaxis.ticktext.map((name) => name.length > 18 ? shortened(name) : name);
      copy.yaxis.tickfont = { size: 11 };
    }
    if (width < 500) {
      copy.xaxis.nticks = 5;
      copy.legend.font = { size: 11 };
    }
    return copy;
  }

  // The names are escaped, so a cut must not go through what stands for a character.
  function shortened(name) {
    const parts = name.match(/&[a-z]+;|[^]/gu);
    return parts.length > 18 ? parts.slice(0, 6).join("") + "…" + parts.slice(-11).join("") : name;
  }

  function draw(width) {
    for (const [key, figure] of Object.entries(figures)) {
      const place = document.getElementById("plot-" + key);
      const layout = fitted(figure.layout, width || place.clientWidth);
      layout.width = width || undefined;
      Plotly.react(place, figure.data, layout, { displayModeBar: false, responsive: !width });
    }
  }

  draw();
  addEventListener("beforeprint", () => draw(paper));
  addEventListener("afterprint", () => draw());
})();
