// Package netapp reads NetApp storage: ONTAP by REST (9.11.1 and later) or ZAPI, and Data ONTAP 7-mode by ZAPI.
//
//	detect ──▶ rest.go │ cluster.go (ZAPI, cDOT) │ sevenmode.go (ZAPI, 7-mode)
//	counters of volumes and nodes ──▶ rows with their base counters ──metrics.go──▶ totals, rates, latencies
//	volumes ──▶ sizes; disks ──▶ progress of zeroing
//
//	zapi.go  XML requests, their pagination and errors
//
// Counters of ONTAP only make sense with their base counters, which the system itself names: a latency is microseconds per operations, a
// busy time per elapsed time.
package netapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
)

// Kind returns the kind of this package.
func Kind() collect.Kind {
	return collect.Kind{Name: target.SourceNetApp, Summary: "NetApp ONTAP by REST or ZAPI, and 7-mode by ZAPI", Interval: 10 * time.Second, Open: Open}
}

// Bounds of one reading.
const (
	recordsMax = 500    // of one page
	pagesMax   = 200    // of one list
	rowsMax    = 50_000 // volumes
)

// system is one kind of NetApp storage. Its methods fail as a whole; zeroing may be unknown.
type system interface {
	// counters returns the counters of an object with their values, and their schema.
	counters(ctx context.Context, o object) ([]row, schema, error)
	sizes(ctx context.Context) ([]size, error)
	zeroing(ctx context.Context) ([]disk, error)
}

// object is a kind of thing that has counters.
type object string

const (
	volumes object = "volume"
	nodes   object = "node"
)

// row has the counters of one volume or node.
type row struct {
	labels map[string]string // name, node, svm, aggregate
	key    string            // identity; names of volumes are unique per SVM only
	values map[string]uint64
	at     time.Time
	// partial: a node did not add its part of the sums, which would look like a restart.
	partial bool
}

// schema describes counters by name.
type schema map[string]counterInfo

type counterInfo struct {
	base   string
	factor float64 // to the base unit
}

// size is the capacity of a volume.
type size struct {
	labels      map[string]string
	total, used float64
}

// disk is one that is being zeroed, or was.
type disk struct {
	name, node string
	zeroed     float64 // 0 to 1
}

// reader reads one system.
type reader struct {
	o        collect.Options
	client   *collect.Client
	system   system
	counters *collect.Counters
	watched  map[string]bool // disks that were being zeroed
}

// Open detects which kind of system answers. The user needs read-only rights to counters, volumes and disks.
func Open(ctx context.Context, o collect.Options) (collect.Collector, error) {
	client, err := collect.NewClient(o, "storage system", "")
	if err != nil {
		return nil, err
	}
	r := &reader{o: o, client: client, counters: collect.NewCounters(), watched: map[string]bool{}}
	if r.system, err = detect(ctx, o, client); err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}

// detect tries REST with counter tables, then ZAPI.
func detect(ctx context.Context, o collect.Options, client *collect.Client) (system, error) {
	answer, err := client.Do(ctx, collect.Call{Path: "/api/cluster"})
	var refused *collect.StatusError
	if err == nil {
		var cluster struct {
			Version struct{ Generation, Major, Minor int }
		}
		v := &cluster.Version
		if answer.JSON(&cluster) == nil && (v.Generation > 9 || v.Generation == 9 && (v.Major > 11 || v.Major == 11 && v.Minor >= 1)) {
			return &rest{client: client, name: o.Source.Name}, nil
		}
	} else if !errors.As(err, &refused) || refused.Status == http.StatusUnauthorized {
		return nil, err
	}
	z := &zapi{client: client, name: o.Source.Name}
	clustered, err := z.version(ctx)
	if err != nil {
		return nil, err
	}
	if clustered {
		return &cluster{zapi: z}, nil
	}
	return &sevenMode{zapi: z}, nil
}

// Collect implements collect.Collector. Without volumes there is no reading; other parts may be missing.
func (r *reader) Collect(ctx context.Context) (collect.Reading, error) {
	var reading collect.Reading
	r.counters.Begin()
	rows, info, err := r.system.counters(ctx, volumes)
	if err != nil {
		return reading, err
	}
	missing := func(what string, err error) {
		if err != nil {
			reading.Missing = append(reading.Missing, fmt.Sprintf("%s: %v", what, err))
		}
	}
	partial := 0
	for _, one := range rows {
		switch {
		case !r.o.Reads(one.labels[collect.LabelName]):
		case one.partial:
			partial++
			r.counters.Doubt(volumeObject(one), one.values)
		default:
			reading.Samples = append(reading.Samples, volumeSamples(r.counters, one, info)...)
		}
	}
	if partial > 0 {
		missing("counters of some volumes", fmt.Errorf("%d of them are incomplete: a node of the cluster does not answer", partial))
	}
	rows, info, err = r.system.counters(ctx, nodes)
	missing("counters of nodes", err)
	for _, one := range slices.DeleteFunc(rows, func(one row) bool { return one.partial }) {
		reading.Samples = append(reading.Samples, nodeSamples(r.counters, one, info)...)
	}
	sizes, err := r.system.sizes(ctx)
	missing("sizes of volumes", err)
	for _, s := range sizes {
		if r.o.Reads(s.labels[collect.LabelName]) {
			reading.Samples = append(reading.Samples, collect.Sample{Name: collect.Size, Labels: s.labels, Value: s.total},
				collect.Sample{Name: collect.Used, Labels: s.labels, Value: s.used})
		}
	}
	disks, err := r.system.zeroing(ctx)
	missing("disks", err)
	reading.Samples = append(reading.Samples, r.zeroing(disks)...)
	return reading, ctx.Err()
}

// zeroing has a value for each disk that is being zeroed, and from then on also when it is done.
func (r *reader) zeroing(disks []disk) []collect.Sample {
	var out []collect.Sample
	for _, d := range disks {
		if d.zeroed < 1 {
			r.watched[d.name] = true
		}
		if r.watched[d.name] {
			labels := map[string]string{collect.LabelObject: "disk", collect.LabelName: d.name, collect.LabelNode: d.node}
			out = append(out, collect.Sample{Name: collect.Zeroed, Labels: labels, Value: d.zeroed})
		}
	}
	return out
}

// Close implements collect.Collector.
func (r *reader) Close() error {
	r.client.Close()
	return nil
}

// factorOf converts a unit of ONTAP to its base unit.
func factorOf(unit string) float64 {
	switch strings.ToLower(unit) {
	case "microsec", "microseconds":
		return 1e-6
	case "millisec", "milliseconds":
		return 1e-3
	case "kb_per_sec", "kb":
		return 1024
	}
	return 1
}
