package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/finding"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// mover moves VMs both as a platform does after a step has powered off their node, and as an administrator does.
type mover struct {
	filler
	fake *fake.Target
}

func (m *mover) Event(e interval.Event) {
	if e.Kind == interval.EventStepEnded && e.Step == "nodes.PowerOff" {
		m.fake.Stray("db-0001", "node-2") // its node is off
		m.fake.Report(target.PlatformEvent{Kind: target.PlatformRestarted, VM: "db-0001", NodeID: "node-2", Text: "HA restarted db-0001"})
		m.fake.Report(target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "node-1", Text: "node-1 left the cluster"})
		m.fake.Report(target.PlatformEvent{Kind: target.PlatformNodeDown, NodeID: "node-3", Text: "node-3 left the cluster"})
		m.fake.Stray("db-0002", "node-3") // its node is not
	}
}

// TestFindingsOfMoves: after a complete run, a VM that the platform restarted on another node is reported without a
// warning, and a VM that was moved by other means with one.
func TestFindingsOfMoves(t *testing.T) {
	text := strings.NewReplacer("runtime_secs: 3000", "runtime_secs: 60", "  - test.Wait: {duration_secs: 3000}\n",
		"  - nodes.PowerOff: {nodes: 0}\n  - test.Wait: {duration_secs: 1}\n").Replace(fillingScenario)
	p, err := Prepare(t.Context(), Order{Source: withLoad(text), Target: "fake:3", Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(t.Context(), RunOptions{Watcher: &mover{fake: p.target.(*fake.Target)}})
	if err != nil || out.Ended != result.EndedCompleted {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	b, err := result.Open(out.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	summary, err := b.Summary()
	if err != nil {
		t.Fatal(err)
	}
	var moves, reports []string
	for _, f := range summary.Findings {
		if f.Code == "vm-moved" {
			moves = append(moves, f.Subject+" "+string(f.Severity))
		}
		if f.Code == "platform-event" {
			reports = append(reports, f.Subject+" "+string(f.Severity))
		}
		if f.Code == "vm-moved" && f.Subject == "db-0001" && !strings.HasSuffix(f.Claim, "The platform reports: HA restarted db-0001.") {
			t.Errorf("the platform is not quoted: %s", f.Claim)
		}
	}
	slices.Sort(moves)
	if want := []string{"db-0001 " + string(finding.Info), "db-0002 " + string(finding.Warning)}; !slices.Equal(moves, want) {
		t.Errorf("findings of moves are %q, want %q: %+v", moves, want, summary.Findings)
	}
	slices.Sort(reports)
	if want := []string{"node-1 " + string(finding.Info), "node-3 " + string(finding.Warning)}; !slices.Equal(reports, want) {
		t.Errorf("findings of what the platform reported are %q, want %q: %+v", reports, want, summary.Findings)
	}
}
