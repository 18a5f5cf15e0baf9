// Numbers and times as the rest of the report prints them (quantity.go); a test compares the two.
'use strict';
const bragg = {};

bragg.units = {
  'kB/s': ['B/s', 1e3], 'MB/s': ['B/s', 1e6], 'MB': ['B', 1e6], 'MHz': ['Hz', 1e6],
  'ns': ['s', 1e-9], 'us': ['s', 1e-6], 'µs': ['s', 1e-6], 'ms': ['s', 1e-3],
};
bragg.ownsPrefix = new Set(['s', 'B/s', 'b/s', 'Hz', 'B', 'W']);
bragg.decimal = [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G'], [1e12, 'T'], [1e15, 'P']];
bragg.binary = [[1, ''], [1024, 'Ki'], [1024 ** 2, 'Mi'], [1024 ** 3, 'Gi'], [1024 ** 4, 'Ti'], [1024 ** 5, 'Pi']];
bragg.time = [[1e-9, 'n'], [1e-6, 'µ'], [1e-3, 'm'], [1, '']];

bragg.base = function (unit) { return bragg.units[unit] || [unit, 1]; };

bragg.prefixes = function (base) {
  if (base === 's') return bragg.time;
  return base === 'B' ? bragg.binary : bragg.decimal;
};

bragg.threeDigits = function (v) {
  if (v >= 99.95) return v.toFixed(0);
  if (v >= 9.995) return v.toFixed(1);
  if (v >= 0.0995) return v.toFixed(2);
  if (v >= 0.00995) return v.toFixed(3);
  return v === 0 ? '0' : v.toFixed(Math.min(12, 2 - Math.floor(Math.log10(v))));
};

// quantity prints a value of a unit with three significant digits: "75.7k IOPS", "1.53 ms".
bragg.quantity = function (value, unit) {
  if (value === null || value === undefined || !isFinite(value)) return '–';
  const [base, factor] = bragg.base(unit);
  const list = bragg.prefixes(base);
  const sign = value < 0 ? '−' : '';
  const v = Math.abs(value) * factor;
  let i = 0;
  while (i + 1 < list.length && v / list[i][0] >= 999.5) i++;
  if (v === 0) i = list.findIndex(p => p[0] === 1);
  const scaled = v / list[i][0];
  const owns = bragg.ownsPrefix.has(base);
  const plain = v === 0 || (!owns && i === 0 && Number.isInteger(scaled));
  const text = sign + (plain ? String(scaled) : bragg.threeDigits(scaled));
  if (owns) return text + ' ' + list[i][1] + base;
  return text + list[i][1] + (base ? ' ' + base : '');
};

// ticks prints the marks of an axis with one common prefix and as few decimals as tell them apart.
bragg.ticks = function (values, unit) {
  const [base, factor] = bragg.base(unit);
  const list = bragg.prefixes(base);
  const top = Math.max(...values.filter(v => v !== null).map(v => Math.abs(v * factor)));
  let i = 0;
  while (i + 1 < list.length && top >= list[i + 1][0]) i++;
  if (!(top > 0)) i = list.findIndex(p => p[0] === 1);
  const scaled = values.map(v => v === null ? null : v * factor / list[i][0]);
  let step = Infinity;
  for (let k = 1; k < scaled.length; k++) {
    if (scaled[k] !== null && scaled[k - 1] !== null) step = Math.min(step, Math.abs(scaled[k] - scaled[k - 1]));
  }
  let decimals = 0;
  while (decimals < 4 && isFinite(step) && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  const suffix = bragg.ownsPrefix.has(base) ? ' ' + list[i][1] + base : list[i][1] + (base ? ' ' + base : '');
  return scaled.map(v => v === null ? '' : v === 0 ? '0' : v.toFixed(decimals) + suffix);
};

// clock prints seconds of the run's axis: "5:00", "1:02:03", with decimals only where asked for.
bragg.clock = function (seconds, decimals) {
  const scale = 10 ** (decimals || 0);
  let s = Math.round(Math.abs(seconds) * scale) / scale;
  const sign = seconds < 0 && s > 0 ? '−' : '';
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  s -= h * 3600 + m * 60;
  const text = s.toFixed(decimals || 0).padStart(decimals ? 3 + decimals : 2, '0');
  return sign + (h ? h + ':' + String(m).padStart(2, '0') : m) + ':' + text;
};

// moment is clock with tenths where there are any: points stand in the middle of their second.
bragg.moment = function (seconds) { return bragg.clock(seconds, Math.abs(seconds - Math.round(seconds)) < 0.05 ? 0 : 1); };
