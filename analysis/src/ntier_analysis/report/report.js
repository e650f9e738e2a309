"use strict";
// Each figure shows its static picture until Plotly has drawn the interactive one in its place; print uses the picture.
document.querySelectorAll("figure[data-plot]").forEach((figure) => {
  const spec = JSON.parse(document.getElementById(figure.dataset.plot).textContent);
  const target = figure.querySelector(".plot");
  if (spec.layout.yaxis2 && figure.clientWidth < 600) stack(spec.layout);
  if (figure.clientWidth < 450) narrow(spec);
  figure.classList.add("live");
  const options = { responsive: true, displaylogo: false, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d"]] };
  Plotly.newPlot(target, spec.data, spec.layout, options).catch(() => figure.classList.remove("live"));
});
// On a narrow screen the legend has a line per entry, and the titles of two axes side by side stand on two lines.
function narrow({ data, layout }) {
  const entries = data.filter((trace) => trace.name && trace.showlegend !== false).length;
  layout.height += 18 * Math.max(0, entries - 4);
  if (layout.xaxis2 && !layout.yaxis2) {
    layout.xaxis2.title.standoff = 44;
    layout.xaxis2.automargin = true;
  }
}
// Two panels side by side become one above the other.
function stack(layout) {
  layout.height = 680;
  layout.xaxis.domain = layout.xaxis2.domain = [0, 1];
  layout.yaxis.domain = [0.58, 1];
  layout.yaxis2.domain = [0, 0.42];
  layout.legend.y = -0.12;
}
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
document.querySelectorAll("button[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(document.getElementById(button.dataset.copy));
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = "Selected: press Ctrl+C";
    }
  });
});
