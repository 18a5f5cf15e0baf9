package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
)

// Codes of warnings of plans.
const (
	codeForeignOnCut   = "foreign-on-cut-node"
	codeSameMachineCut = "cut-node-twice"
)

// foreseeCuts warns of other users' VMs on nodes that the plan powers off. They are checked again before each cut, so
// nodes that do not answer now are skipped.
func (p *Prepared) foreseeCuts(ctx context.Context) {
	foreseer, ok := p.target.(target.PowerCutForeseer)
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
	found := make([]target.PowerCutForesight, len(nodes))
	_ = target.Each(ctx, len(nodes), func(i int) error {
		found[i], _ = foreseer.Foresee(ctx, nodes[i].ID)
		return nil
	})
	for i, n := range nodes {
		p.warnOfCut(n.Name, found[i])
	}
}

func (p *Prepared) warnOfCut(node string, seen target.PowerCutForesight) {
	if names := seen.Foreign; len(names) > 0 {
		p.Plan.Warnings.Add(diag.Diagnostic{Code: codeForeignOnCut, Severity: diag.SeverityWarning,
			Message: fmt.Sprintf("node %q, whose power this scenario takes, runs %d VMs of others: %s", node, len(names), textio.Few(names, namesShown)),
			Hint:    "while they run the cut is refused with exit code 77: move or stop them first"})
	}
	if names := seen.SameAs; len(names) > 0 {
		p.Plan.Warnings.Add(diag.Diagnostic{Code: codeSameMachineCut, Severity: diag.SeverityWarning,
			Message: fmt.Sprintf("node %q, whose power this scenario takes, is the same machine as %s", node, textio.Few(names, namesShown)),
			Hint:    "the cut is refused with exit code 77: name each machine once in the target file"})
	}
}

// namesShown bounds how many names a problem lists.
const namesShown = 5
