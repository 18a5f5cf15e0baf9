package report_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/compare"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"

	"github.com/chromedp/cdproto/input"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
)

// inked counts, for each chart, the pixels that have the colour of one of its lines.
const inked = `bragg.charts.map(c => {
	const canvas = c.box.querySelector('canvas'), data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
	const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const colors = new Set(c.lines.map(l => { probe.fillStyle = bragg.color('--c' + l.color); probe.fillRect(0, 0, 1, 1); return probe.getImageData(0, 0, 1, 1).data.slice(0, 3).join(); }));
	let n = 0;
	for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255 && colors.has(data[i] + ',' + data[i + 1] + ',' + data[i + 2])) n++;
	return n;
})`

func TestChartsAreDrawn(t *testing.T) {
	b := open(t)
	page := htmlOf(t, rehearsalRun())
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(t, scheme)
		b.load(t, page, 1200, 800)
		drawn := eval[[]int](t, b, inked)
		if len(drawn) != 6 {
			t.Fatalf("%s: %d charts are drawn, want 6", scheme, len(drawn))
		}
		for i, n := range drawn {
			// The last chart has a point for each operation, and no line.
			if least := map[bool]int{true: 50, false: 500}[i == len(drawn)-1]; n < least {
				t.Errorf("%s: chart %d has only %d pixels of its lines", scheme, i+1, n)
			}
		}
		if eval[bool](t, b, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s: the page is wider than the window", scheme)
		}
	}
	b.load(t, page, 360, 700)
	if w := eval[int](t, b, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("on a small screen the page is %d pixels wide", w)
	}
	b.check(t)
	checkGaps(t, b)
	checkZoom(t, b)
	checkLegend(t, b)
	checkKeyboard(t, b)
	checkLogScale(t, b)
	b.check(t)
}

// checkGaps: the VM that was off has no point between, and the line is not bridged.
func checkGaps(t *testing.T, b *tab) {
	b.load(t, htmlOf(t, exampleRun()), 1200, 800)
	const hole = `(() => { const c = bragg.charts[2], x = c.u.data[0], y = c.u.data[3];
		return y.filter((v, i) => x[i] > 310 && x[i] < 700 && v !== null).length; })()`
	if n := eval[int](t, b, hole); n != 0 {
		t.Errorf("the chart has %d points in the gap", n)
	}
	const across = `(() => { const c = bragg.charts[2]; c.showOnly(i => i === 2); const u = c.u, ctx = u.ctx;
		const x = Math.round(u.valToPos(500, 'x', true)), column = ctx.getImageData(x, u.bbox.top, 1, u.bbox.height).data;
		const line = bragg.color('--c2'), probe = document.createElement('canvas').getContext('2d'); probe.fillStyle = line; probe.fillRect(0, 0, 1, 1);
		const want = probe.getImageData(0, 0, 1, 1).data; let n = 0;
		for (let i = 0; i < column.length; i += 4) if (column[i] === want[0] && column[i + 1] === want[1] && column[i + 2] === want[2]) n++;
		c.showOnly(() => true); return n; })()`
	if n := eval[int](t, b, across); n != 0 {
		t.Errorf("the line is drawn across the gap: %d pixels", n)
	}
}

// checkZoom drags across the first chart: all charts show that range, and a double click brings everything back.
func checkZoom(t *testing.T, b *tab) {
	type box struct{ Left, Top, Width, Height float64 }
	at := eval[box](t, b, `(() => { bragg.charts[0].box.scrollIntoView(); const r = bragg.charts[0].u.over.getBoundingClientRect();
		return { Left: r.left, Top: r.top, Width: r.width, Height: r.height }; })()`)
	mouse := func(kind input.DispatchMouseEventType, x float64, clicks int64) {
		err := call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.Left + x*at.Width, Y: at.Top + at.Height/2,
			Button: input.MouseButtonLeft, ClickCount: clicks})
		if err != nil {
			t.Fatal(err)
		}
	}
	mouse(input.DispatchMouseEventTypeMouseMoved, 0.25, 0)
	if tip := eval[string](t, b, `bragg.charts[0].tip.hidden ? '' : bragg.charts[0].tip.textContent`); tip == "" {
		t.Error("no tooltip under the pointer")
	}
	if n := eval[int](t, b, `bragg.charts.filter(c => c.u.cursor.left > 0).length`); n != 6 {
		t.Errorf("%d charts share the cursor, want 6", n)
	}
	mouse(input.DispatchMouseEventTypeMousePressed, 0.25, 1)
	mouse(input.DispatchMouseEventTypeMouseMoved, 0.5, 0)
	mouse(input.DispatchMouseEventTypeMouseReleased, 0.5, 1)
	for i, s := range eval[[][]float64](t, b, `bragg.charts.map(c => [c.u.scales.x.min, c.u.scales.x.max])`) {
		if math.Abs(s[0]-(43+0.25*1174)) > 6 || math.Abs(s[1]-(43+0.5*1174)) > 6 {
			t.Errorf("after the drag chart %d shows %v", i+1, s)
		}
	}
	if !eval[bool](t, b, `bragg.charts.every(c => !c.reset.hidden)`) {
		t.Error("a zoomed chart offers no way back")
	}
	mouse(input.DispatchMouseEventTypeMousePressed, 0.5, 2)
	mouse(input.DispatchMouseEventTypeMouseReleased, 0.5, 2)
	for i, s := range eval[[][]float64](t, b, `bragg.charts.map(c => [c.u.scales.x.min, c.u.scales.x.max])`) {
		if s[1]-s[0] < 1100 {
			t.Errorf("after the double click chart %d shows %v", i+1, s)
		}
	}
}

func checkLegend(t *testing.T, b *tab) {
	got := eval[string](t, b, `(() => { const c = bragg.charts[2], button = c.buttons[1]; button.click();
		const off = button.getAttribute('aria-pressed') + c.u.series[2].show; button.click();
		return off + button.getAttribute('aria-pressed') + c.u.series[2].show; })()`)
	if got != "falsefalsetruetrue" {
		t.Errorf("pressing a name in the legend twice gives %s", got)
	}
}

func checkKeyboard(t *testing.T, b *tab) {
	// Scales change after the handler has returned, so each key is pressed in a turn of its own.
	press := func(key string) {
		eval[bool](t, b, fmt.Sprintf(`bragg.charts[0].box.dispatchEvent(new KeyboardEvent('keydown', { key: %q, bubbles: true }))`, key))
	}
	const width = `bragg.charts[0].u.scales.x.max - bragg.charts[0].u.scales.x.min`
	press("ArrowRight")
	press("ArrowRight")
	if eval[bool](t, b, `bragg.charts[0].tip.hidden`) {
		t.Error("arrow keys show no tooltip")
	}
	press("+")
	if w := eval[float64](t, b, width); w > 700 {
		t.Errorf("the plus key leaves %v s", w)
	}
	press("Escape")
	if w := eval[float64](t, b, width); w < 1100 {
		t.Errorf("the escape key leaves %v s", w)
	}
}

// checkLogScale: the latency of the example ranges so far that its axis is logarithmic at first.
func checkLogScale(t *testing.T, b *tab) {
	const scale = `[bragg.charts[0].u.scales.y.distr, bragg.charts[0].u.scales.y.min > 0, document.querySelector('[data-log]').getAttribute('aria-pressed')].join()`
	if got := eval[string](t, b, scale); got != "3,true,true" {
		t.Errorf("the scale is %s at first", got)
	}
	for _, want := range []string{"1,false,false", "3,true,true"} {
		eval[bool](t, b, `document.querySelector('[data-log]').click() === undefined`)
		if got := eval[string](t, b, scale); got != want {
			t.Errorf("a press of the button gives %s, want %s", got, want)
		}
	}
}

// TestPagePrintsNumbersAsTheReportDoes compares format.js with quantity.go.
func TestPagePrintsNumbersAsTheReportDoes(t *testing.T) {
	b := open(t)
	b.load(t, htmlOf(t, exampleRun()), 800, 600)
	values := []float64{0, 1, 9, 9.994, 9.996, 12.34, 99.94, 99.96, 123.4, 999.4, 999.6, 1000, 1234, 56789, 999499, 999501, 1e6, 1.5e9, 2.5e12, 3e15,
		0.5, 0.0995, 0.0123, 0.00995, 0.00123, 1e-5, -1234, -0.5}
	for _, unit := range []string{"", "IOPS", "B/s", "kB/s", "MHz", "MB", "B", "ns", "errors", "ms", "%"} {
		for _, v := range values {
			want := draw.Quantity(v, unit)
			if got := eval[string](t, b, fmt.Sprintf("bragg.quantity(%s, %q)", strconv.FormatFloat(v, 'g', -1, 64), unit)); got != want {
				t.Errorf("%v %s: the page says %q, the report %q", v, unit, got, want)
			}
		}
	}
	b.check(t)
}

func TestHostilePageRunsNothing(t *testing.T) {
	b := open(t)
	c, err := compare.Runs([]*document.Run{hostileRun(), hostileRun()}, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var comparison bytes.Buffer
	if err := report.ComparisonHTML(&comparison, c); err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string][]byte{"report": htmlOf(t, hostileRun()), "comparison": comparison.Bytes()} {
		b.load(t, page, 1000, 800)
		if eval[bool](t, b, `window.hostile !== undefined`) {
			t.Errorf("a name ran code in the %s", name)
		}
		if n := eval[int](t, b, `bragg.charts.length`); n < 4 {
			t.Errorf("only %d charts of the hostile %s are drawn", n, name)
		}
	}
	b.check(t)
}

func TestComparisonIsDrawn(t *testing.T) {
	b := open(t)
	c, err := compare.Runs([]*document.Run{exampleRun(), newFixture(9, 1.2).run("second")}, compare.Options{AlignAt: "nodes.PowerOff"})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := report.ComparisonHTML(&page, c); err != nil {
		t.Fatal(err)
	}
	b.load(t, page.Bytes(), 1200, 800)
	for i, n := range eval[[]int](t, b, inked) {
		if n < 500 {
			t.Errorf("chart %d has only %d pixels of its lines", i+1, n)
		}
	}
	// Both runs fall where the axis has its zero.
	const dip = `bragg.charts[0].u.data.slice(1).map(y => bragg.charts[0].u.data[0].findIndex((x, i) => x > 0 && y[i] < 2000)).map(i => bragg.charts[0].u.data[0][i])`
	for i, at := range eval[[]float64](t, b, dip) {
		if at < 0 || at > 2 {
			t.Errorf("run %d dips at %v s of the common axis", i+1, at)
		}
	}
	b.check(t)
}

// TestPrint: the printed page is light and its charts are redrawn, even where the reader prefers dark.
func TestPrint(t *testing.T) {
	b := open(t)
	b.scheme(t, "dark")
	b.load(t, htmlOf(t, rehearsalRun()), 1200, 800)
	if pdf := b.pdf(t); !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 50_000 {
		t.Errorf("the printed report has %d bytes", len(pdf))
	}
	if eval[bool](t, b, `document.documentElement.classList.contains('printing')`) {
		t.Error("the page stays light after printing")
	}
	got := eval[string](t, b, `(() => { dispatchEvent(new Event('beforeprint')); const r = bragg.color('--paper') + bragg.charts[0].u.width; dispatchEvent(new Event('afterprint')); return r; })()`)
	if got != "#fbfbf9690" {
		t.Errorf("on paper the page has the colour and the width %s", got)
	}
	if wide := eval[[]string](t, b, tooWideOnPaper); len(wide) > 0 {
		t.Errorf("wider than the paper, which would shrink the whole page: %q", wide)
	}
	b.check(t)
}

// tooWideOnPaper are the beginnings of tables that are wider than a page when it is printed; one is made too wide for it first.
const tooWideOnPaper = `(() => {
  const main = document.querySelector('main');
  document.querySelectorAll('.scroll > table tr').forEach(r => { for (let i = 0; i < 12; i++) r.insertCell().textContent = '1.65k IOPS'; });
  dispatchEvent(new Event('beforeprint'));
  main.style.cssText = 'width: 690px; padding: 0';
  const wide = [...document.querySelectorAll('.scroll > table')].filter(t => t.getBoundingClientRect().width > 692).map(t => t.textContent.slice(0, 40));
  main.style.cssText = '';
  dispatchEvent(new Event('afterprint'));
  return wide;
})()`

// manyEvents is a run with 16 events within 0.2 s of the failure, and as many VMs of both kinds of latency.
func manyEvents() *document.Run {
	run := exampleRun()
	for i := range 14 {
		run.Events = append(run.Events, interval.Event{AtNanos: fixtureOff*second + int64(i)*1e7, Kind: interval.EventAnnotation, Phase: "run",
			Message: fmt.Sprintf("event %d", i)})
	}
	slices.SortStableFunc(run.Events, func(a, b interval.Event) int { return cmp.Compare(a.AtNanos, b.AtNanos) })
	f := newFixture(7, 1)
	e := f.evaluated("each", "OLTP latency of each VM", "latency", "ns")
	for vm := range 16 {
		for _, kind := range []string{"service", "response"} {
			e.Series = append(e.Series, result.Series{Name: fmt.Sprintf("OLTP-%04d", vm+1), Kind: kind, Statistic: "mean",
				Points: f.points(1e6*float64(vm+1), 0.02, nil)})
		}
	}
	f.addStats(&e)
	run.Summary.Results[3].Full = 9600
	run.Summary.Results = append(run.Summary.Results, e)
	return run
}

// TestEventsStandAtTheirMoment: events that are close have one flag with their number, which the tooltip lists, at their moment.
func TestEventsStandAtTheirMoment(t *testing.T) {
	b := open(t)
	b.load(t, htmlOf(t, manyEvents()), 1200, 800)
	type flag struct{ Off, Count float64 }
	flags := eval[[]flag](t, b, `bragg.charts[0].chart.flags.map(f => ({ Off: Math.max(...f.marks.map(m => Math.abs(bragg.charts[0].u.valToPos(m.at, 'x') - f.x))), Count: f.marks.length }))`)
	most := 0.0
	for _, f := range flags {
		if most = max(most, f.Count); f.Off > 12 {
			t.Errorf("a flag of %v events is %v pixels from one of them", f.Count, f.Off)
		}
	}
	if most < 14 {
		t.Errorf("flags: %v", flags)
	}
	tip := eval[string](t, b, `(() => { const c = bragg.charts[0]; bragg.hovered = c; c.u.setCursor({ left: c.u.valToPos(300, 'x'), top: 50 }); return c.tip.textContent; })()`)
	if !strings.Contains(tip, "event 3") || !strings.Contains(tip, "more events") {
		t.Errorf("the tooltip at the flag says %q", tip)
	}
	// The number of every event is on the page.
	if n := eval[int](t, b, `document.querySelectorAll('ol.marks li').length`); n < 16 {
		t.Errorf("%d events are listed", n)
	}
	b.check(t)
}

func TestAxesAndTooltipsOfCharts(t *testing.T) {
	b := open(t)
	b.load(t, htmlOf(t, manyEvents()), 1200, 800)
	axis := eval[string](t, b, `bragg.charts.find(c => c.chart.unit === 'IOPS').u.axes[1]._values.join()`)
	if !strings.Contains(axis, "k IOPS") {
		t.Errorf("the axis of IOPS has %q", axis)
	}
	// The tooltip has the time of the point, which is in the middle of a second, not of the pixel.
	tip := eval[string](t, b, `(() => { const c = bragg.charts[0]; bragg.hovered = c; c.u.setCursor({ left: c.u.valToPos(200.3, 'x'), top: 50 });
		return c.tip.querySelector('.at').textContent + ' ' + bragg.moment(c.u.data[0][c.u.cursor.idx]); })()`)
	if shown, own, _ := strings.Cut(tip, " "); shown != own || shown == "" {
		t.Errorf("the tooltip says %q, the point is at %q", shown, own)
	}
	cpu := eval[string](t, b, `(() => { const c = bragg.charts.find(c => c.chart.full); bragg.hovered = c; c.u.setCursor({ left: c.u.valToPos(200, 'x'), top: 50 });
		return c.tip.textContent + c.u.axes[2]._values.join(); })()`)
	if !strings.Contains(cpu, "GHz · ") || !strings.Contains(cpu, "%") || !strings.Contains(cpu, "20 %,40 %") {
		t.Errorf("CPU shows %q", cpu)
	}
	b.check(t)
}

// TestServiceAndResponseWithoutColours: the dashes of the two differ, and of their percentiles.
func TestServiceAndResponseWithoutColours(t *testing.T) {
	b := open(t)
	b.load(t, htmlOf(t, exampleRun()), 1200, 800)
	dashes := eval[[]string](t, b, `bragg.charts[0].lines.map((l, i) => l.name + ': ' + (bragg.charts[0].u.series[i + 1].dash || []).join('-'))`)
	seen := map[string]string{}
	for _, d := range dashes {
		name, dash, _ := strings.Cut(d, ": ")
		if other, taken := seen[dash]; taken {
			t.Errorf("%s and %s both have the dashes %q", name, other, dash)
		}
		seen[dash] = name
	}
	if len(seen) != 3 {
		t.Errorf("lines: %v", dashes)
	}
	b.check(t)
}

// TestManyVMsAreABand: of 16 VMs the lowest, the median and the highest are drawn, and each VM on demand.
func TestManyVMsAreABand(t *testing.T) {
	b := open(t)
	b.load(t, htmlOf(t, manyEvents()), 1200, 800)
	const chart = `bragg.charts.find(c => c.chart.spread)`
	shown := func() int { return eval[int](t, b, chart+`.u.series.slice(1).filter(s => s.show).length`) }
	if n := shown(); n != 6 {
		t.Errorf("%d lines are drawn, want lowest, median and highest of two kinds", n)
	}
	got := eval[[]float64](t, b, `(() => { const c = `+chart+`, at = 500, last = c.lines.length; const of = k => c.lines.map((l, i) => [l, c.u.data[i + 1][at]]).filter(([l, v]) => l.kind === 'service' && k(l)).map(([, v]) => v);
		const all = of(l => !l.band).sort((a, b) => a - b), band = of(l => l.band); return [...band, all[0], (all[7] + all[8]) / 2, all[15]]; })()`)
	if len(got) != 6 || got[0] != got[3] || got[1] != got[4] || got[2] != got[5] {
		t.Errorf("lowest, median, highest of the band and of the VMs: %v", got)
	}
	press := func(text string) {
		eval[bool](t, b, fmt.Sprintf(`[...document.querySelectorAll('.legend button')].find(b => b.textContent === %q).click() === undefined`, text))
	}
	press("show single VMs")
	if n := shown(); n != 6+32 {
		t.Errorf("on demand %d lines are drawn, want 38", n)
	}
	press("band only")
	if n := shown(); n != 6 {
		t.Errorf("and then %d", n)
	}
	if n := eval[int](t, b, chart+`.u.bands.length`); n != 2 {
		t.Errorf("%d bands are filled", n)
	}
	b.check(t)
}

// TestFirstScreen: without scrolling, a reader sees both verdicts, the numbers that answer, and the chart that shows it.
func TestFirstScreen(t *testing.T) {
	b := open(t)
	for name, run := range map[string]*document.Run{"failed": exampleRun(), "rehearsal": rehearsalRun()} {
		b.load(t, htmlOf(t, run), 1400, 1000)
		for _, what := range []string{".verdicts", ".headline", ".figure.leading .chart canvas"} {
			box := eval[[]float64](t, b, fmt.Sprintf(`(r => [r.top, r.bottom, r.width])(document.querySelector(%q).getBoundingClientRect())`, what))
			if box[0] < 0 || box[1] > 1000 || box[2] < 100 {
				t.Errorf("%s: %s from %v to %v pixels, %v wide", name, what, box[0], box[1], box[2])
			}
		}
		b.load(t, htmlOf(t, run), 420, 900)
		if wide := eval[float64](t, b, `document.documentElement.scrollWidth`); wide > 420 {
			t.Errorf("%s: the page is %v pixels wide on a phone", name, wide)
		}
	}
	b.check(t)
}
