package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/result"
)

// activeRun is a run with the activity of that many VMs: the second is idle for a time, the third has died and comes back.
func activeRun(vms int) *document.Run {
	f := newFixture(3, 1)
	e := f.evaluated("active", "OLTP activity", "active", "")
	for vm := 1; vm <= vms; vm++ {
		s := result.Series{Name: fmt.Sprintf("OLTP-%04d", vm)}
		for at := fixtureFrom; at < fixtureEnd; at++ {
			value := 1.0
			switch {
			case vm == 2 && at >= fixtureOff && at < fixtureOn:
				value = 0
			case vm == 3 && at >= fixtureOff && at < fixtureOn:
				value = math.NaN()
			}
			s.Points = append(s.Points, result.Point{Seconds: float64(at) + 0.5, Value: value})
		}
		e.Series = append(e.Series, s)
	}
	run := f.run("20250921-141503-lanes1")
	run.Summary.Results = []result.Evaluated{e}
	return run
}

// laneInk tells what a lane shows at a second of the run: how many of its pixels are filled, and how many are neither filled nor
// plain.
const laneInk = `((lane, at) => { const c = bragg.charts[0], u = c.u, n = bragg.lanesOf(c.chart).length, h = u.bbox.height / n;
	const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
	const rgb = name => { probe.fillStyle = bragg.color(name); probe.fillRect(0, 0, 1, 1); return probe.getImageData(0, 0, 1, 1).data.slice(0, 3).join(); };
	const filled = rgb('--c0'), empty = rgb('--raised'), out = [0, 0, 0];
	const image = window.image ??= u.ctx.getImageData(0, 0, u.ctx.canvas.width, u.ctx.canvas.height), data = image.data;
	const left = Math.round(u.valToPos(at, 'x', true)) - 6, top = Math.round(u.bbox.top + (lane + 0.2) * h), rows = Math.round(h * 0.4);
	for (let y = top; y < top + rows; y++) for (let x = left; x < left + 12; x++) {
		const i = 4 * (y * image.width + x), is = data.slice(i, i + 3).join();
		out[data[i + 3] && is === filled ? 0 : data[i + 3] && is === empty ? 1 : 2]++;
	}
	return out.map(v => Math.round(100 * v / (12 * rows))); })`

// TestActivityIsInLanes: each VM has a lane of its own, filled, empty or hatched.
func TestActivityIsInLanes(t *testing.T) {
	b := open(t)
	const middle = (fixtureOff + fixtureOn) / 2
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(t, scheme)
		b.load(t, htmlOf(t, activeRun(4)), 1200, 800)
		for lane, want := range []string{"100 0 0", "0 100 0", "hatched", "100 0 0"} {
			ink := eval[[]int](t, b, fmt.Sprintf("%s(%d, %d)", laneInk, lane, middle))
			got := strings.Trim(fmt.Sprint(ink), "[]")
			if hatched := ink[0] == 0 && ink[1] < 10 && ink[2] > 90; got != want && (want != "hatched" || !hatched) {
				t.Errorf("%s: lane %d has %s %% filled, empty, other; want %s", scheme, lane, got, want)
			}
			if early := eval[[]int](t, b, fmt.Sprintf("%s(%d, %d)", laneInk, lane, fixtureOff-100)); early[0] != 100 {
				t.Errorf("%s: lane %d is %v before the cut, want filled", scheme, lane, early)
			}
		}
	}
	names := eval[string](t, b, `bragg.charts[0].u.axes[1]._values.join()`)
	if names != "OLTP-0001,OLTP-0002,OLTP-0003,OLTP-0004" {
		t.Errorf("the lanes are labelled %s", names)
	}
	for lane, want := range []string{"OLTP-0001I/O", "OLTP-0002no I/O", "OLTP-0003no data"} {
		tip := eval[string](t, b, fmt.Sprintf(`(() => { const c = bragg.charts[0]; bragg.hovered = c;
			c.u.setCursor({ left: c.u.valToPos(%d, 'x'), top: (%d + 0.5) * c.u.over.clientHeight / 4 }); return c.tip.textContent; })()`, middle, lane))
		if !strings.HasSuffix(tip, want) {
			t.Errorf("the tooltip of lane %d says %q, want %q", lane, tip, want)
		}
	}
	if keys := eval[string](t, b, `[...document.querySelectorAll('.lane-key')].map(e => e.textContent).join()`); keys != "I/O,no I/O,no data" {
		t.Errorf("the key is %q", keys)
	}
	b.check(t)
}

// TestManyLanesAreScrolled: lanes get thinner, and from a number on the chart is scrolled rather than as long as the page.
func TestManyLanesAreScrolled(t *testing.T) {
	b := open(t)
	for vms, scrolled := range map[int]bool{40: false, 600: true} {
		b.load(t, htmlOf(t, activeRun(vms)), 1200, 800)
		type box struct{ Seen, Whole, Lane float64 }
		got := eval[box](t, b, `(() => { const c = bragg.charts[0]; return { Seen: c.box.clientHeight, Whole: c.box.scrollHeight,
			Lane: c.u.over.clientHeight / c.lines.length }; })()`)
		if got.Seen > 560 || got.Lane < 2.9 || (got.Whole > got.Seen) != scrolled {
			t.Errorf("%d VMs: %+v", vms, got)
		}
	}
	b.check(t)
}

// TestSumsOfActivityStayLines: how many VMs are active is a number.
func TestSumsOfActivityStayLines(t *testing.T) {
	run := activeRun(1)
	run.Summary.Results[0].Series[0].Name = "all"
	if page := string(htmlOf(t, run)); strings.Contains(page, `"lanes":true`) {
		t.Error("a sum over VMs is drawn with lanes")
	}
	if page := string(htmlOf(t, activeRun(2))); !strings.Contains(page, `"lanes":true`) {
		t.Error("single VMs are not drawn with lanes")
	}
}
