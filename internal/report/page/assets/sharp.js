// Charts are drawn with at least two pixels per CSS pixel, so that paper and magnified screens get sharp lines. uPlot
// reads the ratio once, when it is loaded, so this comes before it.
'use strict';
(() => {
  const real = Object.getOwnPropertyDescriptor(window, 'devicePixelRatio');
  if (!real || !real.get) return;
  Object.defineProperty(window, 'devicePixelRatio', { configurable: true, get: () => Math.max(2, real.get.call(window)) });
})();
