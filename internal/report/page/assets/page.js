// The page as a whole: draws all charts, keeps their zoom together, follows the theme, the width and the printer.
'use strict';

bragg.charts = [];
bragg.printWidth = 690; // of the column on A4 and on Letter

bragg.zoom = function (range) { bragg.charts.forEach(c => c.setZoom(range)); };

bragg.start = function () {
  const data = JSON.parse(document.getElementById('data').textContent);
  bragg.windows = data.windows || [];
  const byID = new Map(data.charts.map(c => [c.id, c]));
  document.querySelectorAll('[data-chart]').forEach(box => {
    const chart = byID.get(box.dataset.chart);
    if (!chart) return;
    const drawn = new bragg.Chart(box, chart, data.marks);
    bragg.charts.push(drawn);
    box.addEventListener('mouseenter', () => { bragg.hovered = drawn; });
    box.addEventListener('touchstart', () => { bragg.hovered = drawn; }, { passive: true });
  });
  document.querySelectorAll('nav.contents a').forEach(a => a.addEventListener('click', () => {
    const folded = document.querySelector(a.hash + ' > details');
    if (folded) folded.open = true;
  }));
  bragg.follow();
  document.documentElement.dataset.drawn = String(bragg.charts.length);
};

bragg.redraw = function () { bragg.charts.forEach(c => c.u.redraw(false, true)); };

// fitTables shrinks, for paper, each table that is wider than the column; a browser would shrink the whole page instead.
bragg.fitTables = function (on) {
  const main = document.querySelector('main'), tables = [...document.querySelectorAll('.scroll > table')];
  tables.forEach(t => { t.style.zoom = ''; });
  if (!on) return;
  main.style.cssText = `width: ${bragg.printWidth}px; padding: 0; box-sizing: content-box`;
  const widths = tables.map(t => t.offsetWidth);
  tables.forEach((t, i) => { if (widths[i] > bragg.printWidth) t.style.zoom = bragg.printWidth / widths[i]; });
  main.style.cssText = '';
};

bragg.follow = function () {
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    if (bragg.printing || document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    bragg.charts.forEach(c => c.resize());
  }).observe(document.body);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', bragg.redraw);
  // Paper is white: for the printer the charts are redrawn in the light colours, and details are opened.
  let opened = [];
  const print = on => {
    if (bragg.printing === on) return;
    bragg.printing = on;
    document.documentElement.classList.toggle('printing', on);
    if (on) opened = [...document.querySelectorAll('details:not([open]):not(.screen-only)')];
    opened.forEach(d => { d.open = on; });
    bragg.fitTables(on);
    bragg.charts.forEach(c => c.resize());
    bragg.redraw();
  };
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
};

bragg.start();
