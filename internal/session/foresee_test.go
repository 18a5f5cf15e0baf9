package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/fake"
)

// neighbors is a target that knows what others run on its nodes.
type neighbors struct {
	*fake.Target
	on map[string][]string

	mu    sync.Mutex
	asked []string
}

func (n *neighbors) Foresee(_ context.Context, node string) (target.PowerCutForesight, error) {
	n.mu.Lock()
	n.asked = append(n.asked, node)
	n.mu.Unlock()
	if n.on[node] == nil {
		return target.PowerCutForesight{}, errors.New("it does not answer")
	}
	seen := target.PowerCutForesight{Foreign: n.on[node]}
	if node == "id-4" {
		seen.SameAs = []string{"node-9"}
	}
	return seen, nil
}

// TestPlanForeseesCuts: of the nodes that lose their power, and of no others, the plan names what others have there.
func TestPlanForeseesCuts(t *testing.T) {
	many := []string{"vm-1", "vm-2", "vm-3", "vm-4", "vm-5", "vm-6"}
	on := map[string][]string{"id-1": {"theirs"}, "id-2": {"not asked for"}, "id-3": many, "id-4": {}}
	tgt := &neighbors{on: on}
	p := &Prepared{target: tgt, Plan: &planner.Plan{}}
	for i := 1; i <= 5; i++ {
		p.Inventory.Nodes = append(p.Inventory.Nodes, target.Node{ID: fmt.Sprint("id-", i), Name: fmt.Sprint("node-", i)})
	}
	p.Plan.Power = []plan.PowerOperation{{Node: "node-1", Action: "off"}, {Node: "node-1", Action: "on"}, {Node: "node-1", Action: "off"},
		{Node: "node-2", Action: "on"}, {Node: "node-3", Action: "off"}, {Node: "node-4", Action: "off"}, {Node: "node-5", Action: "off"}}
	p.foreseeCuts(t.Context())
	if slices.Sort(tgt.asked); !slices.Equal(tgt.asked, []string{"id-1", "id-3", "id-4", "id-5"}) {
		t.Errorf("asked %v", tgt.asked)
	}
	var said []string
	for _, w := range p.Plan.Warnings {
		said = append(said, w.Code+": "+w.Message)
	}
	if len(said) != 3 || !strings.Contains(said[0], `foreign-on-cut-node: node "node-1", whose power`) || !strings.HasSuffix(said[0], "1 VMs of others: theirs") ||
		!strings.HasSuffix(said[1], "6 VMs of others: vm-1, vm-2, vm-3, vm-4, vm-5 and 1 more") ||
		!strings.HasPrefix(said[2], `cut-node-twice: node "node-4"`) || !strings.HasSuffix(said[2], "the same machine as node-9") {
		t.Errorf("said %q", said)
	}
}
