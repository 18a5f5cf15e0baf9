package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

// codeForeignOnCut is of warnings of plans.
const codeForeignOnCut = "foreign-on-cut-node"

// foreseeCuts warns of what others have running on nodes whose power the plan takes. It is looked at again before each cut, so
// what cannot be asked now is left out.
func (p *Prepared) foreseeCuts(ctx context.Context) {
	foreseer, ok := p.target.(target.CutForeseer)
	if !ok {
		return
	}
	var nodes []target.Node
	for _, n := range p.Inventory.Nodes {
		for _, o := range p.Plan.Power {
			if o.Node == n.Name && o.Action == "off" && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	found := make([][]string, len(nodes))
	_ = target.Each(ctx, len(nodes), func(i int) error {
		found[i], _ = foreseer.Foresee(ctx, nodes[i].ID)
		return nil
	})
	for i, n := range nodes {
		if len(found[i]) == 0 {
			continue
		}
		const shownMax = 5
		names := strings.Join(found[i][:min(len(found[i]), shownMax)], ", ")
		if len(found[i]) > shownMax {
			names += ", …"
		}
		p.Plan.Warnings.Add(diag.Diagnostic{Code: codeForeignOnCut, Severity: diag.SeverityWarning,
			Message: fmt.Sprintf("node %q, whose power this scenario takes, runs %d VMs of others: %s", n.Name, len(found[i]), names),
			Hint:    "while they run the cut is refused with exit code 77: move or stop them first"})
	}
}
