// Package collect reads what storage systems count: operations, bytes and latencies of volumes, hosts and VMs as the storage sees
// them. It changes nothing on a storage system.
//
//	target.Source ──builtin.Open──▶ Collector ──Collect──▶ Reading (samples with labels, times and units)
//	Follow: a Collector every interval ──▶ samples on the axis of a run, with the labels of its nodes and VMs
//
//	names.go    names, units and meanings of the metrics of all kinds
//	delta.go    counters of storage systems: rates, resets, wraps, latencies with their base counters
//	client.go   HTTP clients with verified certificates and credentials that no error shows
//	follow.go   reads a source during a run
//	mapping.go  nodes and VMs of a run, found by the names that the platform gives them
//
// Kinds of sources are packages below this one.
package collect

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/trust"
)

// Sample is one value that a source counted.
type Sample struct {
	Name   string // a Prometheus name with its base unit; see Metrics
	Labels map[string]string
	Value  float64
	// At is when the source measured it, by the clock of the source; zero if it does not say.
	At time.Time
}

// Key identifies the series of a sample by its name and labels.
func (s Sample) Key() string {
	var b strings.Builder
	b.WriteString(s.Name)
	names := make([]string, 0, len(s.Labels))
	for name := range s.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\xff%s\xff%s", name, s.Labels[name])
	}
	return b.String()
}

// Reading is the result of one call of Collect.
type Reading struct {
	Samples []Sample
	// Clock is the source's own clock when it answered; zero if it does not say. Times of samples are corrected by it.
	Clock time.Time
	// Missing names parts that could not be read, each with its reason. The rest of the reading is valid.
	Missing []string
}

// Age is that of the newest sample, by the clock of the source if it has one; known is false if samples have no times.
func (r Reading) Age(now time.Time) (age time.Duration, known bool) {
	if !r.Clock.IsZero() {
		now = r.Clock
	}
	for _, s := range r.Samples {
		if d := max(0, now.Sub(s.At)); !s.At.IsZero() && (!known || d < age) {
			age, known = d, true
		}
	}
	return age, known
}

// Collector reads one source. Collect is never called concurrently. It returns an error if nothing could be read; the caller may try
// again. It obeys ctx. Errors contain no credentials. Close ends sessions and connections.
type Collector interface {
	Collect(ctx context.Context) (Reading, error)
	Close() error
}

// Options are the inputs of a collector.
type Options struct {
	Source       target.Source
	User, Secret string // of its credential, already read; without a user, Secret is a token
	// Wanted reports whether queries of the scenario name a metric; nil: none. Exporters keep those too.
	Wanted func(name string) bool
	// IsVM reports whether a VM of the platform is one of the run; nil: every VM is read, as for an exporter of metrics.
	IsVM func(name string) bool
}

// Trust returns how the certificate of the source is checked.
func (o Options) Trust(service string) trust.Service {
	return trust.Service{Name: service, Fingerprint: o.Source.Fingerprint, CAFile: o.Source.CAFile, Unverified: o.Source.TLS == target.TLSUnverified}
}

// Reads reports whether a volume, container or datastore is read: every one unless the source lists some.
func (o Options) Reads(name string) bool {
	return len(o.Source.Objects) == 0 || Matches(o.Source.Objects, name)
}

// ReadsVM reports whether a VM is read: those of the run, and those that the source lists.
func (o Options) ReadsVM(name string) bool {
	if o.IsVM == nil {
		return o.Reads(name)
	}
	return o.IsVM(name) || Matches(o.Source.Objects, name)
}

// Matches reports whether one of the patterns, names that may end with "*", matches name.
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == name || open && strings.HasPrefix(name, prefix)
	})
}

// Kind is a registered kind of source.
type Kind struct {
	Name     string
	Summary  string
	Interval time.Duration // between readings, unless the target file says otherwise
	Open     func(ctx context.Context, o Options) (Collector, error)
}

// Labels of samples. Node and VM have the names of the platform; during a run they are mapped to those of the run.
const (
	LabelSource    = "source"    // name of the source in the target file
	LabelObject    = "object"    // what Name is: "volume", "vm", "host"
	LabelName      = "name"      // name of the object on the platform
	LabelDirection = "direction" // "read", "write", "other"
	LabelNode      = "node"
	LabelVM        = "vm"
)

// windowPeriods is the window of a query in intervals of its source: two readings are always within it.
const windowPeriods = 2.5

// Window is how far before its time a point of a query of a source may describe.
func Window(interval time.Duration) time.Duration {
	return time.Duration(windowPeriods * float64(max(interval, time.Second)))
}

// RateQuery is the query of a chart with its window in place of $__rate_interval.
func RateQuery(query string, interval time.Duration) string {
	return strings.ReplaceAll(query, "$__rate_interval", fmt.Sprintf("%dms", Window(interval).Milliseconds()))
}

// joinURL appends a path to the address of a source.
func joinURL(base, add string) string {
	base, add = strings.TrimSuffix(base, "/"), path.Clean("/"+add)
	return base + add
}
