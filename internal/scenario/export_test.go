package scenario

import (
	"testing"

	"github.com/braggdev/bragg/internal/scenario/yamltree"
)

// RecordChildren collects what the child processes of a test take.
func RecordChildren(t *testing.T) *[]Usage {
	t.Helper()
	var all []Usage
	observeChild = func(u Usage) { all = append(all, u) }
	t.Cleanup(func() { observeChild = func(Usage) {} })
	return &all
}

// KeyTables are the keys that the parser knows, by the name of their definition in the schema; "" is the document.
func KeyTables() map[string][]string {
	return map[string][]string{
		"": topKeys, "variable": varKeys, "preset": presetKeys, "group": groupKeys, "disks": diskKeys, "workload": workloadKeys,
		"iogen_params": iogenKeys, "result": resultKeys, "band": bandKeys, "expectation": expectKeys,
	}
}

// Choices are the values that the parser knows, by definition and key of the schema.
func Choices() map[[2]string][]string {
	return map[[2]string][]string{
		{"group", "template_type"}: templateTypes, {"result", "metric"}: clusterMetric, {"result", "aggregate"}: aggregates,
		{"result", "report_metrics"}: reportMetrics,
	}
}

// TopRequired are the keys that every document has.
func TopRequired() []string { return topRequired }

// PlainValue parses a rendered text into plain values.
func PlainValue(text string) any {
	r := reader{source: splitLines(text)}
	root := r.tree(text, offset(0))
	if root == nil {
		return nil
	}
	return yamltree.AsAny(*root)
}

// Statistics of thresholds.
func Statistics() []string { return statistics }

// WatchChild watches a process as runChild does.
var WatchChild = watchChild
