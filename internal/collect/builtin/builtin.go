// Package builtin is the list of kinds of sources, and opens the sources of a target file.
package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/netapp"
	"github.com/braggdev/bragg/internal/collect/nutanix"
	"github.com/braggdev/bragg/internal/collect/prometheus"
	"github.com/braggdev/bragg/internal/collect/vsphere"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/result"
	"github.com/braggdev/bragg/internal/target"
)

// Kinds lists all kinds. To add one: a package, its word in target.SourceKinds, a line here.
func Kinds() []collect.Kind {
	return append(prometheus.Kinds(), nutanix.Kind(), netapp.Kind(), vsphere.Kind())
}

// kindOf returns the kind of a source.
func kindOf(s target.Source) (collect.Kind, error) {
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k collect.Kind) bool { return k.Name == s.Kind })
	if i < 0 {
		return collect.Kind{}, &diag.Error{Code: "source-kind", Exit: diag.ExitData, Message: fmt.Sprintf("source %q: unknown kind %q", s.Name, s.Kind)}
	}
	return kinds[i], nil
}

// Open reads the credential of a source and opens it. Errors are those of the kind and of the secret; they contain no credentials.
func Open(ctx context.Context, c *target.Config, o collect.Options) (collect.Collector, error) {
	kind, err := kindOf(o.Source)
	if err != nil {
		return nil, err
	}
	if name := o.Source.Credential; name != "" {
		credential := c.Credentials[name]
		o.User = credential.User
		if o.Secret, err = credential.Secret.Read(ctx); err != nil {
			return nil, fmt.Errorf("source %q: %w", o.Source.Name, err)
		}
	}
	if len(o.Source.Charts) > 0 {
		o.Wanted = wanted(o)
	}
	if o.Source.Interval == 0 {
		o.Source.Interval = kind.Interval
	}
	return kind.Open(ctx, o)
}

// wanted reports whether queries of the scenario or of the source's own charts name a metric.
func wanted(o collect.Options) func(name string) bool {
	var queries []string
	for _, c := range o.Source.Charts {
		queries = append(queries, collect.RateQuery(c.Query, o.Source.Interval))
	}
	named, before := metric.Named(queries), o.Wanted
	return func(name string) bool { return named(name) || before != nil && before(name) }
}

// Facts describes sources for a manifest.
func Facts(c *target.Config) []result.SourceInfo {
	var list []result.SourceInfo
	for i, s := range Sources(c) {
		info := result.SourceInfo{Name: s.Name, Kind: s.Kind, IntervalNanos: s.Interval.Nanoseconds()}
		// A source without an address is the platform itself.
		info.Simulated = c.Sources[i].URL == "" && c.Simulates[target.CapNodeMeter] != ""
		if s.TLS == target.TLSUnverified || s.TLS == target.TLSNone {
			info.TLS = s.TLS
		}
		for _, c := range s.Charts {
			info.Charts = append(info.Charts, result.SourceChart{Title: c.Title, Query: c.Query, Unit: c.Unit})
		}
		list = append(list, info)
	}
	return list
}

// Sources returns the sources of a target file with the intervals of their kinds where it sets none.
func Sources(c *target.Config) []target.Source {
	list := slices.Clone(c.Sources)
	for i := range list {
		list[i] = c.Resolved(list[i])
		if kind, err := kindOf(list[i]); err == nil {
			list[i].Interval = cmp.Or(list[i].Interval, kind.Interval)
		}
	}
	return list
}
