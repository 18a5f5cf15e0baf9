package bmc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	restoreMax    = 15 * time.Minute // of all nodes together; longer than two tries at one that may still shut down
	restoreTrying = 3 * time.Minute  // how long tries at one node begin: BMCs miss commands, and refuse them while they are busy
	restoreAgain  = 5 * time.Second
)

// Dark is a node that a dead run powered off.
type Dark struct {
	Node target.NodeConfig // with its BMC
	Soft bool              // a shutdown of its system was requested, and may still be under way
}

// Restore powers on nodes that a dead run powered off, by what its journal has of their BMCs: c has the credentials and what the
// owner allows. It needs nothing of the target, whose platform may run on the nodes that are off. The result has an entry for each
// node, by id: nil if it is on. They are powered on at the same time, so that a slow BMC does not keep the others off.
func Restore(ctx context.Context, c target.Config, nodes []Dark, o Options) map[string]error {
	ctx, cancel := context.WithTimeout(ctx, restoreMax)
	defer cancel()
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = restore(ctx, c, n, o) })
	}
	all.Wait()
	done := map[string]error{}
	for i, n := range nodes {
		done[n.Node.ID] = errs[i]
	}
	return done
}

func restore(ctx context.Context, c target.Config, dark Dark, o Options) error {
	node := dark.Node
	name := nodeName(node)
	if !c.Allow.NodePower {
		return target.PowerForbidden(node.ID)
	}
	s, err := Open(ctx, name, c, *node.BMC)
	if err != nil {
		return err
	}
	s.o = o.defaults()
	return s.restore(ctx, dark)
}

// restore tries several times. A BMC that identifies itself as another machine than the target file names is refused: that one would be
// switched, and the node stay off. One that does not identify itself is not refused, because power on is harmless.
func (s *Switch) restore(ctx context.Context, dark Dark) error {
	if dark.Soft {
		s.mayShutDown()
	}
	for began := time.Now(); ; {
		err := s.known(ctx, dark.Node)
		if err == nil {
			err = s.On(ctx)
		}
		if err == nil || final(err) || diag.ExitCode(err) == diag.ExitRefused || time.Since(began) > s.o.Trying || wait.For(ctx, restoreAgain) != nil {
			return err
		}
	}
}

// known returns an error if the BMC says that its machine is not the node.
func (s *Switch) known(ctx context.Context, node target.NodeConfig) error {
	want := declared(node)
	if !want.Known() {
		return nil
	}
	id, err := s.Identity(ctx)
	if err != nil {
		return nil // On returns the reason, if it lasts
	}
	match, by := id.Compare(want)
	if match != Differs {
		return nil
	}
	return &diag.Error{
		Code: CodeIdentity, Exit: diag.ExitRefused,
		Message: fmt.Sprintf("power on node %q: the BMC at %s belongs to another machine: by its %s, it says %s and the target file says %s",
			s.node, node.BMC.Address, by, id.shown(), want.shown()),
		Hint: "give the BMC of the node its address back, or power the node on by hand",
	}
}
