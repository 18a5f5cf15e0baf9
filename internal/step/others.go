package step

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/verb"
)

// othersShownMax bounds how many of a kind are named, otherRunesMax their names, othersPatience how long listing them may take.
const (
	othersShownMax = 20
	otherRunesMax  = 100
	othersPatience = time.Minute
)

// reportOthers lists foreign objects on the target that were skipped, with the reason. A failed listing does not fail the
// cleanup.
func reportOthers(ctx context.Context, env *verb.Env) {
	ctx, cancel := context.WithTimeout(ctx, othersPatience)
	defer cancel()
	var all []target.Other
	if lister, ok := env.Target.(target.OtherLister); ok {
		found, err := lister.Others(ctx, env.Tag)
		if err != nil {
			env.Notes.Log(fmt.Sprintf("foreign objects on the target could not be listed completely: %v", err))
		}
		all = found
	}
	all = append(all, nodesLeftOff(ctx, env)...)
	for _, kind := range []string{target.OtherVM, target.OtherVolume, target.OtherNode} {
		named := slices.DeleteFunc(slices.Clone(all), func(o target.Other) bool { return o.Kind != kind })
		for _, o := range named[:min(len(named), othersShownMax)] {
			env.Notes.Log("skipped: " + describeOther(o, env.Plan.Target.Nodes))
		}
		if more := len(named) - othersShownMax; more > 0 {
			env.Notes.Log(fmt.Sprintf("skipped: %d more of kind %s", more, kind))
		}
	}
}

func describeOther(o target.Other, nodes []target.Node) string {
	where := ""
	for _, n := range nodes {
		if n.ID == o.NodeID && o.Kind != target.OtherNode {
			where = " on " + n.Name
		}
	}
	return fmt.Sprintf("%s %s%s: %s", o.Kind, strconv.Quote(textio.Clip(o.Name, otherRunesMax)), where, o.Why)
}

// nodesLeftOff returns the nodes without power that this run did not switch off, and those whose state it cannot read.
func nodesLeftOff(ctx context.Context, env *verb.Env) []target.Other {
	if _, ok := env.Target.(target.NodePower); !ok {
		return nil
	}
	nodes, ours := env.Plan.Target.Nodes, env.Nodes.SwitchedOff()
	found := make([]target.Other, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		if !n.HasBMC || slices.Contains(ours, i) {
			continue
		}
		wait.Go(func() {
			state, err := env.Nodes.State(ctx, i)
			switch {
			case err != nil:
				found[i] = target.Other{Kind: target.OtherNode, Name: n.Name, Why: fmt.Sprintf("its power state is unknown: %v", err)}
			case state == target.PowerOff:
				found[i] = target.Other{Kind: target.OtherNode, Name: n.Name, Why: "it is powered off, and this run did not do that"}
			}
		})
	}
	wait.Wait()
	return slices.DeleteFunc(found, func(o target.Other) bool { return o.Kind == "" })
}
