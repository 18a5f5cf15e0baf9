package step

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// checkProvider reports a check that means nothing on this kind of target. A simulated target stands for any.
func checkProvider(v *verb.View, problems *verb.Problems, step string, providers ...string) {
	if v.Inventory.Simulated || slices.Contains(providers, v.Inventory.Provider) {
		return
	}
	problems.Hint("", "lacks-capability", "it is meant for "+strings.Join(providers, " or "),
		fmt.Sprintf("%s means nothing on a target of provider %q", step, v.Inventory.Provider))
}

// ready asks the target whether its services answer and are up.
func ready(ctx context.Context, env *verb.Env) error {
	checker, ok := env.Target.(target.ReadyChecker)
	if !ok {
		return errors.New("check the cluster: the target cannot tell whether it is ready")
	}
	if err := checker.Ready(ctx); err != nil {
		return fmt.Errorf("check the cluster: %w", err)
	}
	return nil
}

// datastoreVisible asks the target whether a node sees a datastore, and marks that it does.
func datastoreVisible(ctx context.Context, env *verb.Env, index int, datastore string, mark bool) error {
	checker, ok := env.Target.(target.DatastoreChecker)
	if !ok {
		return errors.New("check a datastore: the target cannot tell")
	}
	node := nodeAt(index, env.Plan.Target.Nodes)
	if err := checker.DatastoreVisible(ctx, node.ID, datastore); err != nil {
		return fmt.Errorf("check that node %q sees datastore %q: %w", node.Name, datastore, err)
	}
	annotate(env, mark, "%s sees datastore %q", node.Name, datastore)
	return nil
}

// nodePresent checks that the target still has a node and says that it is ready, and marks that with a remark about the
// node, in which %s is its name.
func nodePresent(ctx context.Context, env *verb.Env, index int, mark bool, remark string) error {
	want := nodeAt(index, env.Plan.Target.Nodes)
	inventory, err := env.Target.Inventory(ctx)
	if err != nil {
		return fmt.Errorf("check node %q: %w", want.Name, err)
	}
	if !slices.ContainsFunc(inventory.Nodes, func(n target.Node) bool { return n.ID == want.ID }) {
		return fmt.Errorf("check node %q: it is no node of the target any more", want.Name)
	}
	if err := ready(ctx, env); err != nil {
		return err
	}
	annotate(env, mark, remark, want.Name)
	return nil
}
