// Package live shows the progress of a run on a terminal or in a log.
//
//	plan, events, intervals ──▶ View: current state ──one goroutine──▶ a drawing in place, or lines
//
// Callers never wait for the terminal.
package live

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/textio"
)

const (
	redrawEvery   = 500 * time.Millisecond
	progressEvery = 10 * time.Second // between lines of progress where nothing can be redrawn
	pendingMax    = 1000             // lines that wait for a slow terminal; more are dropped and counted
)

// Options select where and how a View is shown.
type Options struct {
	Out      io.Writer
	Terminal bool                       // redraw in place; otherwise plain lines
	Color    bool                       // escape codes for colour
	Size     func() (columns, rows int) // called before each redraw, so that a resize needs no signal; nil: 100 by 40
}

// View shows the progress of a run on a terminal or in a log. Its methods may be called from several goroutines; they never wait
// for the terminal. One goroutine draws; Close ends it.
type View struct {
	options Options
	wake    chan struct{}
	done    chan struct{}
	ended   chan struct{}

	mu      sync.Mutex
	state   state
	pending []string // lines that stay, not yet written
	lost    int

	drawn []int // of the drawing goroutine: the widths of the lines drawn last, in columns
}

// New starts the view.
func New(o Options) *View {
	if o.Size == nil {
		o.Size = func() (int, int) { return draw.WidthDefault, 40 }
	}
	l := &View{options: o, wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	l.state.init()
	go l.loop()
	return l
}

// Plan gives the view the plan. Without it, the view has no estimate of the remaining time.
func (l *View) Plan(p *plan.Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.setPlan(p)
}

// Event shows an event of the run.
func (l *View) Event(e interval.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(l.state.event(e, !l.options.Terminal)...)
}

// Interval counts the operations of a workload. It does not keep iv.
func (l *View) Interval(iv interval.Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.interval(&iv)
}

// Print writes lines that stay above the view.
func (l *View) Print(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(text) {
		l.keep(textio.Line(strings.TrimRight(line, "\n")))
	}
}

// Close writes the pending lines, removes the part that is redrawn and waits until the drawing goroutine has ended. It may be
// called more than once.
func (l *View) Close() {
	l.mu.Lock()
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	l.mu.Unlock()
	<-l.ended
}

// keep queues lines that stay; the lock is held.
func (l *View) keep(lines ...string) {
	for _, line := range lines {
		if len(l.pending) >= pendingMax {
			l.lost++
			continue
		}
		l.pending = append(l.pending, line)
	}
	if len(lines) > 0 {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *View) loop() {
	defer close(l.ended)
	every := progressEvery
	if l.options.Terminal {
		every = redrawEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-l.done:
			l.write(false, true)
			return
		case <-l.wake:
			l.write(false, false)
		case <-ticker.C:
			l.write(true, false)
		}
	}
}

// write brings the screen up to date. The text is built under the lock and written without it, so that a blocked terminal stops
// only this goroutine.
func (l *View) write(tick, last bool) {
	columns, rows := l.options.Size()
	columns = max(columns, draw.WidthMin)
	l.mu.Lock()
	lines := l.pending
	l.pending = nil
	if l.lost > 0 {
		lines = append(lines, fmt.Sprintf("… %d lines omitted", l.lost))
		l.lost = 0
	}
	var block []string
	switch {
	case last:
	case l.options.Terminal:
		block = l.state.block(columns, max(rows, 4)-1, draw.Style{Color: l.options.Color})
	case tick:
		lines = append(lines, l.state.progress()...)
	}
	l.mu.Unlock()
	// A write error means that the terminal is gone; the run continues.
	_, _ = io.WriteString(l.options.Out, l.screen(lines, block, columns))
}

// screen returns the output that turns the previous screen into lines that stay and, below them, the block.
//
// Each row is erased as a whole before it is written: terminals that break lines again at another width count cells that were
// erased only to the end of the line, and the rows could no longer be computed. The rest of the screen is never erased from its
// first row, because some terminals then move what was there into their history.
//
// Two things cannot be corrected: rows of the block that the terminal moved into its history because it became lower than the
// block, and output drawn after the terminal was resized but before it reported its new size.
func (l *View) screen(lines, block []string, columns int) string {
	var b strings.Builder
	if !l.options.Terminal {
		for _, line := range lines {
			b.WriteString(line + "\n")
		}
		return b.String()
	}
	b.WriteString("\x1b[?2026h") // synchronized update, if the terminal supports it: no flicker
	up := l.rowsDrawn(columns)
	if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", up)
	}
	for _, line := range lines {
		for _, part := range draw.Hang(line, columns) {
			b.WriteString("\x1b[2K" + part + "\n")
		}
	}
	l.drawn = l.drawn[:0]
	for _, line := range block {
		b.WriteString("\x1b[2K" + line + "\n")
		l.drawn = append(l.drawn, draw.DisplayWidth(withoutCodes(line)))
	}
	if up > 0 && len(lines)+len(block) == 0 { // the cursor is still in the first row of the block, perhaps of the screen
		b.WriteString("\x1b[2K\x1b[1B\x1b[J\x1b[1A")
	} else {
		b.WriteString("\x1b[J")
	}
	b.WriteString("\x1b[?2026l")
	return b.String()
}

// rowsDrawn is how many rows the block takes now: a terminal that became narrower has rewrapped the lines.
func (l *View) rowsDrawn(columns int) int {
	rows := 0
	for _, w := range l.drawn {
		rows += max(1, (w+columns-1)/columns)
	}
	return rows
}

// withoutCodes removes the escape codes that style writes.
func withoutCodes(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(after, "m")
	}
}
