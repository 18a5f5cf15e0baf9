package verb

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// CheckReferences reports arguments that name a group, workload, file or node that does not exist.
func (k Kind) CheckReferences(step Step, v *View, problems *Problems) {
	fields := reflect.ValueOf(step).Elem()
	for _, a := range k.Arguments() {
		field := fields.Field(a.index)
		if a.Type == "nodes" {
			checkNodes(a.Name, field.String(), len(v.Inventory.Nodes), problems)
		}
	}
	k.checkNames(step, v, problems)
}

// checkNames does the checks that need no target: groups and workloads. Files that cannot be read are reported by the reader of the scenario.
func (k Kind) checkNames(step Step, v *View, problems *Problems) {
	fields := reflect.ValueOf(step).Elem()
	for _, a := range k.Arguments() {
		field := fields.Field(a.index)
		if a.Refers == "" || a.Refers == "file" || field.Kind() != reflect.String || field.String() == "" {
			continue
		}
		name := field.String()
		known := referable(v, a.Refers)
		if slices.Contains(known, name) {
			continue
		}
		hint := fmt.Sprintf("the scenario has no %s", a.Refers)
		if near := diag.Nearest(name, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else if len(known) > 0 {
			hint = fmt.Sprintf("the scenario has %s", diag.Quoted(known, 5))
		}
		problems.Hint(a.Name, "unknown-"+a.Refers, hint, fmt.Sprintf("unknown %s %q", a.Refers, name))
	}
}

func checkNodes(arg, text string, count int, problems *Problems) {
	if text == "" {
		return // missing and required: reported already
	}
	slice, err := scenario.ParseNodes(text)
	if err != nil {
		problems.Hint(arg, "node-slice", `write indexes like 0, :2, n-1 or all`, err.Error())
		return
	}
	indexes, err := slice.Select(count)
	switch {
	case err != nil:
		problems.Errorf(arg, "node-range", "%v", err)
	case len(indexes) == 0:
		problems.Errorf(arg, "node-range", "nodes %q select none of the target's %d nodes", text, count)
	}
}

func referable(v *View, kind string) []string {
	var names []string
	switch kind {
	case "group":
		return v.GroupNames()
	case "workload":
		for _, w := range v.Scenario.Workloads {
			names = append(names, w.Name)
		}
	}
	return names
}

// CheckNodeIndex reports an index without a node.
func CheckNodeIndex(arg string, index int, v *View, problems *Problems) {
	if count := len(v.Inventory.Nodes); index >= count || index < -count {
		problems.Errorf(arg, "node-range", "%v", scenario.MissingNode(index, count))
	}
}

// NodeAt returns the node with that index; negative ones count from the end.
func NodeAt(index int, nodes []target.Node) target.Node {
	if index < 0 {
		index += len(nodes)
	}
	return nodes[index]
}
