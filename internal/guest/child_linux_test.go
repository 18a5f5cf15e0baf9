package guest

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is the agent too: the first process starts its own program again under this name.
func TestMain(m *testing.M) {
	if os.Args[0] == "bragg-agent" {
		behave(os.Args[1])
	}
	os.Exit(m.Run())
}

// behave does what "HOW PATH" says, and makes a file at PATH when it runs.
func behave(argument string) {
	how, path, _ := strings.Cut(argument, " ")
	switch how {
	case "crash":
		panic("as a defect would")
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "refuse":
		os.Exit(64)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
	}
	_ = os.WriteFile(path, nil, 0o600)
	time.Sleep(time.Hour)
}

func console(t *testing.T) (m *machine, said func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "console")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &machine{console: f}, func() string {
		text, _ := os.ReadFile(path)
		return string(text)
	}
}

func TestAgentThatCrashes(t *testing.T) {
	for _, how := range []string{"crash", "killed"} {
		m, said := console(t)
		o := m.keepAgent(t.Context(), how)
		if o.reboot || o.reason != "the agent crashed 5 times" || strings.Count(said(), "starting it again") != agentCrashesMax-1 {
			t.Errorf("%s: ended with %+v, said\n%s", how, o, said())
		}
	}
}

func TestAgentThatRefuses(t *testing.T) {
	m, said := console(t)
	if o := m.keepAgent(t.Context(), "refuse"); o.reason != "the agent ended with code 64" || said() != "" {
		t.Errorf("ended with %+v, said %q", o, said())
	}
}

func TestAgentIsStopped(t *testing.T) {
	for _, how := range []string{"willing", "deaf"} {
		if how == "deaf" && testing.Short() {
			continue // it takes as long as an agent is given
		}
		started := filepath.Join(t.TempDir(), "started")
		m, said := console(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan outcome)
		go func() { ended <- m.keepAgent(ctx, how+" "+started) }()
		for {
			if _, err := os.Stat(started); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		if o := <-ended; o.reason != "the agent was stopped" || strings.Contains(said(), "killing it") != (how == "deaf") {
			t.Errorf("%s: ended with %+v, said %q", how, o, said())
		}
	}
}
