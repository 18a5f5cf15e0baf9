package metric

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// keptByDefault are the node_exporter metrics that are recorded even if no query names them. A node_exporter has about a thousand
// series, too many to record for a hundred VMs over hours.
var keptByDefault = []string{
	"node_disk_", "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes",
	"node_network_receive_bytes_total", "node_network_transmit_bytes_total", "node_boot_time_seconds", "node_load1",
}

// Keep selects the metrics for a Scraper: those that the queries of a scenario name, those of keptByDefault, and all metrics of
// other exporters (names without the prefixes node_, go_, process_ and promhttp_). A query that cannot be parsed, or that selects
// by a pattern of names, keeps everything.
func Keep(queries []string) func(name string) bool {
	wanted := Named(queries)
	return func(name string) bool {
		if wanted(name) {
			return true
		}
		for _, prefix := range keptByDefault {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		for _, prefix := range []string{"node_", "go_", "process_", "promhttp_"} {
			if strings.HasPrefix(name, prefix) {
				return false
			}
		}
		return true
	}
}

// Named reports whether queries name a metric. A query that cannot be parsed, or that selects by a pattern of names, names all.
func Named(queries []string) func(name string) bool {
	wanted := map[string]bool{}
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	for _, q := range queries {
		expr, err := Expand(q, "run", "group")
		if err != nil {
			return func(string) bool { return true }
		}
		tree, err := p.ParseExpr(expr)
		if err != nil {
			return func(string) bool { return true }
		}
		all := false
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			if v, ok := node.(*parser.VectorSelector); ok {
				wanted[v.Name] = true
				all = all || v.Name == ""
			}
			return nil
		})
		if all {
			return func(string) bool { return true }
		}
	}
	return func(name string) bool { return wanted[name] }
}
