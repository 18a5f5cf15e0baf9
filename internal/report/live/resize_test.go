package live_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report/live"
	"github.com/braggdev/bragg/internal/testreq"
)

// showVariable makes the test program draw a live view on its terminal for a minute.
const showVariable = "REPORT_TEST_SHOWS_LIVE"

func show() {
	l := live.New(live.Options{Out: os.Stdout, Terminal: true, Size: func() (int, int) {
		// At once, as the program does: a terminal that changes between the question and the drawing keeps a part of the former view.
		columns, rows, err := term.GetSize(int(os.Stdout.Fd()))
		if err != nil {
			return 100, 40
		}
		return columns, rows
	}})
	l.Plan(livePlan())
	l.Event(interval.Event{Kind: interval.EventPhaseStarted, Phase: "run"})
	l.Event(interval.Event{Kind: interval.EventStepStarted, Phase: "run", Step: "test.Wait", StepID: 2})
	for second := range int64(60) {
		l.Interval(liveInterval("OLTP", second, 4000))
		l.Print(fmt.Sprintf("line %d stays", second))
		time.Sleep(time.Second)
	}
}

// TestLiveLeavesNoGhosts resizes a real terminal, which breaks the lines of the view again: the view is shown once.
func TestLiveLeavesNoGhosts(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	tmux := testreq.Program(t, "tmux")
	server := fmt.Sprintf("report-test-%d", os.Getpid())
	call := func(args ...string) string {
		t.Helper()
		text, err := exec.Command(tmux, append([]string{"-L", server, "-f", "/dev/null"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v: %s", args, err, text)
		}
		return string(text)
	}
	call("new-session", "-d", "-x", "110", "-y", "30", "-e", showVariable+"=1", "-e", "LC_ALL=C.UTF-8", os.Args[0])
	t.Cleanup(func() { call("kill-server") })
	screen := func() string { return call("capture-pane", "-p", "-S", "-500") }
	// await waits until the view has been drawn again after this many lines that stay, and returns what is on the terminal.
	lines := 0
	await := func(drawn string) string {
		t.Helper()
		for range 600 {
			text := screen()
			if at := strings.Count(text, " stays"); at > lines+1 && strings.Contains(text, drawn) && strings.Contains(text, "Ctrl-C") {
				lines = at
				return text
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("no %q after a resize:\n%s", drawn, screen())
		return ""
	}
	await("workload  VMs")
	for _, size := range []struct {
		columns, rows int
		drawn         string
	}{{60, 30, "VMs 1 "}, {105, 30, "workload  VMs"}, {105, 12, "workload  VMs"}, {50, 20, "VMs 1 "}, {110, 30, "workload  VMs"}} {
		call("resize-window", "-x", fmt.Sprint(size.columns), "-y", fmt.Sprint(size.rows))
		text := await(size.drawn)
		for _, part := range []string{"Node failure", "steps done", "Ctrl-C"} {
			if n := strings.Count(text, part); n != 1 {
				t.Errorf("at %d by %d the terminal has %q %d times:\n%s", size.columns, size.rows, part, n, text)
			}
		}
		for i := range lines {
			if !strings.Contains(text, fmt.Sprintf("line %d stays", i)) {
				t.Errorf("at %d by %d line %d is gone:\n%s", size.columns, size.rows, i, text)
			}
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(showVariable) != "" {
		show()
		return
	}
	os.Exit(m.Run())
}
