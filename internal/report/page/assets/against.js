// Charts whose axis is not time: throughput and response time against workers, one number of run after run.
'use strict';

// place is a position on the axis of a chart.
bragg.place = function (chart, x) {
  if (chart.names) return chart.names[Math.min(Math.max(Math.round(x), 1), chart.names.length) - 1];
  return chart.against ? `${Math.round(x * 10) / 10} ${chart.against}` : bragg.moment(x);
};

// number is a number on such an axis: 500, 20k, 1.5M.
bragg.number = function (v) {
  return v >= 1e6 ? `${v / 1e6}M` : v >= 1e4 ? `${v / 1e3}k` : String(v);
};

// againstOptions turns the options of a chart over time into those of one against something else: no events, no common cursor and
// zoom, and points without a line where they are single measurements.
bragg.againstOptions = function (chart, lines, options) {
  const { sync, ...cursor } = options.cursor;
  options.cursor = { ...cursor, drag: { x: false, y: false, setScale: false } };
  options.axes = options.axes.map((axis, i) => i ? axis : { ...axis, size: 28, label: chart.against, labelSize: 16, labelFont: axis.font,
    incrs: [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap(power => [1, 2, 5].map(digit => digit * 10 ** power)),
    values: (u, list) => list.map(v => v === null ? '' : bragg.number(v)) });
  options.series = options.series.map((s, i) => i && lines[i - 1].dots
    ? { ...s, paths: () => null, points: { show: true, size: 8, fill: s.stroke } } : s);
  options.hooks = { drawClear: [], draw: [] };
};
