package live_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/report/live"
	"github.com/braggdev/bragg/internal/stat"
)

func livePlan() *plan.Plan {
	p, err := plan.Read([]byte(`{"scenario":{"display_name":"Node failure"},"estimate":{"total_ns":40000000000},"steps":[
 {"id":1,"phase":"run","name":"workload.Start","start_ns":0,"duration_ns":1000000000},
 {"id":2,"phase":"run","name":"test.Wait","start_ns":1000000000,"duration_ns":30000000000}]}`))
	if err != nil {
		panic(err)
	}
	return p
}

// screen understands the few codes that View writes and keeps what a terminal would show.
type screen struct {
	mu      sync.Mutex
	columns int
	lines   []string
	row     int
	raw     bytes.Buffer
}

var liveCodes = regexp.MustCompile(`^\x1b\[(\?2026[hl]|[0-9;]*[ABJKm])`)

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(p)
	text := string(p)
	line := ""
	for text != "" {
		if m := liveCodes.FindString(text); m != "" {
			text = text[len(m):]
			switch {
			case strings.HasSuffix(m, "A"):
				up := 0
				fmt.Sscanf(m, "\x1b[%dA", &up)
				s.row = max(0, s.row-up)
			case strings.HasSuffix(m, "B"):
				s.row++
			case strings.HasSuffix(m, "J"):
				s.lines = s.lines[:min(s.row, len(s.lines))]
			}
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\n':
			for len(s.lines) <= s.row {
				s.lines = append(s.lines, "")
			}
			s.lines[s.row] = line
			s.row++
			line = ""
		case '\r':
		default:
			line += string(r)
		}
	}
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns, 40
}

func liveInterval(workload string, second int64, operations uint64) interval.Interval {
	iv := interval.Interval{Workload: workload, Instance: 1, VM: "vm-1", Sequence: second, StartNanos: second * 1e9, LengthNanos: 1e9}
	h := &stat.Histogram{}
	h.RecordN(2_000_000, operations)
	iv.Directions[interval.Read] = interval.Traffic{Operations: operations, Bytes: operations * 8192, Service: h}
	return iv
}

func liveEvents(l *live.View) {
	l.Plan(livePlan())
	l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"})
	l.Event(interval.Event{Kind: interval.EventStepStarted, Phase: "run", Step: "workload.Start", StepID: 1, Workload: "OLTP"})
	l.Event(interval.Event{Kind: interval.EventStepEnded, Phase: "run", Step: "workload.Start", StepID: 1, Workload: "OLTP"})
	l.Event(interval.Event{Kind: interval.EventStepStarted, Phase: "run", Step: "test.Wait", StepID: 2})
	for second := range int64(10) {
		time.Sleep(time.Second)
		l.Interval(liveInterval("OLTP", second, 4000))
	}
	time.Sleep(600 * time.Millisecond)
	synctest.Wait()
}

func TestLiveRedrawsInPlace(t *testing.T) {
	for _, columns := range []int{120, 60, 30} {
		synctest.Test(t, func(t *testing.T) {
			s := &screen{columns: columns}
			l := live.New(live.Options{Out: s, Terminal: true, Size: s.size})
			liveEvents(l)
			shown := s.text()
			flat := strings.Join(strings.Fields(shown), " ")
			for _, want := range []string{"Node failure", "1 of 2 steps done", "10 s elapsed, about 28 s left", "▸ test.Wait (0:11)",
				"OLTP", "4.00k", "32.8 MB/s", "2.00 ms", "Ctrl-C stops the run, cleans up and writes the report."} {
				if !strings.Contains(flat, want) {
					t.Errorf("%d columns: the view lacks %q:\n%s", columns, want, shown)
				}
			}
			if n := strings.Count(shown, "test.Wait"); n != 1 {
				t.Errorf("%d columns: the view shows the step %d times:\n%s", columns, n, shown)
			}
			for line := range strings.Lines(shown) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > columns {
					t.Errorf("%d columns: a line has %d: %q", columns, n, line)
				}
			}
			l.Event(interval.Event{AtNanos: 11e9, Kind: interval.EventWorkloadEnd, Workload: "OLTP", Instance: 1})
			l.Close()
			l.Close()
			if last := s.text(); strings.Contains(last, "Ctrl-C") || !strings.Contains(strings.Join(strings.Fields(last), " "),
				"workload OLTP ended after 11 s: 40,000 operations") {
				t.Errorf("%d columns: after the end the screen shows\n%s", columns, last)
			}
		})
	}
}

func TestLiveFollowsAResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 100}
		l := live.New(live.Options{Out: s, Terminal: true, Size: s.size})
		defer l.Close()
		liveEvents(l)
		s.mu.Lock()
		s.columns = 44
		s.raw.Reset()
		s.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		// 4 lines: the two of more than 44 columns take two and three rows now.
		if up := regexp.MustCompile(`\x1b\[(\d+)A`).FindStringSubmatch(s.raw.String()); up == nil || up[1] == "5" {
			t.Errorf("after a resize the view goes up %v rows, want more than the lines it drew", up)
		}
	})
}

func TestLivePlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		l := live.New(live.Options{Out: &s})
		liveEvents(l)
		l.Event(interval.Event{AtNanos: 10e9, Kind: interval.EventStepEnded, Phase: "run", Step: "test.Wait", StepID: 2, Error: "the disk is full"})
		l.Event(interval.Event{AtNanos: 10e9, Kind: interval.EventStepStarted, Phase: "run", Step: "playbook.Run", StepID: 3, Message: "site.yml"})
		l.Event(interval.Event{AtNanos: 14e9, Kind: interval.EventStepEnded, Phase: "run", Step: "playbook.Run", StepID: 3, Message: "site.yml",
			Error: "canceled: stopped by the user", Canceled: "stopped by the user"})
		l.Print("hostile\x1b[2Jname\n")
		l.Close()
		want := `0:00  run phase
0:00  workload.Start OLTP started
0:00  workload.Start OLTP done after 0 s
0:00  test.Wait started
0:10  run, about 29 s left; OLTP: 4.00k IOPS, 32.8 MB/s, p50 2.00 ms, p99 2.00 ms, 0 errors
0:10  test.Wait FAILED after 10 s: the disk is full
0:10  playbook.Run site.yml started
0:14  playbook.Run site.yml CANCELED after 4 s (stopped by the user)
hostile�[2Jname
`
		if got := s.raw.String(); got != want {
			t.Errorf("plain lines are\n%s\nwant\n%s", got, want)
		}
	})
}

// stuck is a terminal that accepts no output until it is released.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

func TestLiveNeverKeepsTheRunWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		l := live.New(live.Options{Out: s, Terminal: true})
		for second := range int64(5000) {
			l.Event(interval.Event{AtNanos: second, Kind: interval.EventLog, Message: "again"})
			l.Interval(liveInterval("OLTP", second, 1))
		}
		close(s.release)
		l.Close()
	})
}

// A VM that does not answer is shown as such for as long as its load is not known to have ended.
func TestLiveShowsSilentVMs(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &screen{columns: 120}
			l := live.New(live.Options{Out: s, Terminal: terminal, Size: s.size})
			liveEvents(l)
			flat := func() string { // the newest state: where nothing is redrawn, the last line of progress and what follows it
				time.Sleep(11 * time.Second)
				synctest.Wait()
				text := s.text()
				if !terminal {
					text = text[strings.LastIndex(text, "OLTP: "):]
				}
				return strings.Join(strings.Fields(text), " ")
			}
			const stale = "stale: no answer from vm-1 for 0:"
			if text := flat(); strings.Contains(text, "stale") {
				t.Errorf("a VM that answers is called stale:\n%s", text)
			}
			silent := interval.Event{AtNanos: 20e9, Kind: interval.EventAgentSilent, Subject: "vm-1", Message: "lost"}
			l.Event(silent)
			l.Event(interval.Event{AtNanos: 20e9, Kind: interval.EventAgentSilent, Subject: "vm-9", Message: "without a load"})
			if text := flat(); !strings.Contains(text, stale) || strings.Contains(text, "vm-9 for") || terminal && !strings.Contains(text, "1, 1 silent") {
				t.Errorf("the view does not show the silent VM:\n%s", text)
			}
			l.Event(interval.Event{AtNanos: 30e9, Kind: interval.EventAgentBack, Subject: "vm-1", Message: "back"})
			if text := flat(); strings.Contains(text, stale) {
				t.Errorf("a VM that is back is called stale:\n%s", text)
			}
			l.Event(silent)
			l.Event(interval.Event{AtNanos: 40e9, Kind: interval.EventDisturbance, Workload: "OLTP", Instance: 1, Subject: "vm-1", Error: "given up"})
			if text := flat(); strings.Contains(text, stale) {
				t.Errorf("a VM whose load was given up is called stale:\n%s", text)
			}
			l.Close()
		})
	}
}
