package pgbench

import (
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

const (
	// walBytesDefault is PostgreSQL's max_wal_size, which it may exceed for a while.
	walBytesDefault = unit.GiB
	// walBytesLeast is the smallest max_wal_size of a rehearsal: PostgreSQL requires two segments.
	walBytesLeast = 64 * unit.MiB
	// roomBytes is what 64 of make room for the smallest database on a disk that is shrunk for a rehearsal.
	roomBytes = 4 * unit.MiB
)

// walBytes is the planned size of the WAL.
func (c *config) walBytes() int64 {
	for _, s := range c.settings {
		if s.name == "max_wal_size" {
			if n, err := unit.ParseBytes(s.value); err == nil {
				return max(n, walBytesLeast)
			}
		}
	}
	return walBytesDefault
}

// shrink fits memory and WAL of the server to the data of a rehearsal.
func (c *config) shrink(factor float64) {
	if factor <= 0 || factor >= 1 || c.endpoint != "" {
		return
	}
	scaled := func(n, least int64) string {
		return fmt.Sprintf("%dMB", max(least, int64(float64(n)*factor))/unit.MiB)
	}
	wal := setting{"max_wal_size", scaled(c.walBytes(), walBytesLeast)}
	c.settings = slices.DeleteFunc(c.settings, func(s setting) bool { return s.name == "max_wal_size" || s.name == "min_wal_size" })
	c.settings = append(c.settings, wal, setting{"min_wal_size", "32MB"})
	for i, s := range c.settings {
		if n, err := unit.ParseBytes(s.value); err == nil && s.name == "shared_buffers" {
			c.settings[i].value = scaled(n, 16*unit.MiB)
		}
	}
}

// plan describes a load or a prefill.
func (c *config) plan(w *load.Workload) (load.Plan, error) {
	c.shrink(w.Scale.Factor)
	p := load.Plan{Engine: c.engine(), BytesWritten: -1, BlockBytesMax: roomBytes, Program: &load.ProgramPlan{Needs: needs(c)}}
	if err := c.planData(w, &p); err != nil {
		return p, err
	}
	run := commands{config: c, folder: func(disk string) string { return disk }, major: 15}
	own := c.endpoint == ""
	if own && w.Prefill {
		run.show(&p, run.initdb())
	}
	if own {
		run.show(&p, run.postgres())
	}
	if w.Prefill {
		run.show(&p, run.initialise())
		if !own {
			p.Notes = append(p.Notes, "the prefill replaces the tables pgbench_* of the endpoint, and they stay there after the run")
		}
		p.BytesWritten = 2 * dataBytes(c.scale) // with the WAL
		return p, nil
	}
	run.show(&p, run.load(w.Runtime))
	for _, s := range c.scripts {
		p.Jobs = append(p.Jobs, load.JobPlan{Name: s.name, Pattern: "transactions", QueueDepth: c.clients, DepthAsked: c.clients, Clones: 1,
			RateIOPS: c.rate * float64(s.weight) / float64(c.weights()), Reads: true, Writes: s.writes, Flushes: s.writes})
	}
	c.advise(&p)
	return p, nil
}

func (c *config) weights() (sum int) {
	for _, s := range c.scripts {
		sum += s.weight
	}
	return sum
}

// planData notes where the data goes and how much it is.
func (c *config) planData(w *load.Workload, p *load.Plan) error {
	if c.endpoint != "" {
		p.Program.Data = append(p.Program.Data, fmt.Sprintf("endpoint %q, from %s or %s on the VM", c.endpoint, endpointVariable(c.endpoint), endpointFile(c.endpoint)))
		return nil
	}
	data, wal := dataBytes(c.scale), c.walBytes()
	p.Program.Data = append(p.Program.Data,
		fmt.Sprintf("%s: scale %d, %s", c.disk, c.scale, unit.FormatBytes(data)), fmt.Sprintf("%s: WAL, about %s", c.walDisk, unit.FormatBytes(wal)))
	if c.disk == c.walDisk {
		p.Extents = []extent.Extent{{Device: c.disk, Length: data + wal, Writes: true}}
	} else {
		p.Extents = []extent.Extent{{Device: c.disk, Length: data, Writes: true}, {Device: c.walDisk, Length: wal, Writes: true}}
	}
	if w.Scale.Factor > 0 && w.Scale.Factor < 1 {
		p.ScaledFrom = dataBytes(c.fullScale)
	}
	for _, e := range p.Extents {
		for _, d := range w.Devices {
			if d.Name == e.Device && d.SizeBytes > 0 && e.Length > d.SizeBytes {
				return &diag.Error{Code: "device-too-small", Exit: diag.ExitData,
					Message: fmt.Sprintf("disk %s has %s and the database takes %s", d.Name, unit.FormatBytes(d.SizeBytes), unit.FormatBytes(e.Length)),
					Hint:    "use larger disks, less data, or a lower max_wal_size"}
			}
		}
	}
	return nil
}

// contended reports whether clients wait for each other's rows: each transaction of tpcb-like updates one of as many rows as the scale.
func (c *config) contended() bool {
	return c.scale > 0 && c.scale < c.clients && slices.ContainsFunc(c.scripts, func(s script) bool { return s.name == builtins[0].name })
}

// advise notes what makes the numbers of a load doubtful.
func (c *config) advise(p *load.Plan) {
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if c.endpoint == "" {
		note("the clients run on the VM of the server and share its CPUs")
	}
	if c.rate > 0 && c.rate/float64(c.threads) < slowPerThread {
		note("at %g transactions/s per thread intervals arrive late: pgbench writes its log in blocks of 4 KiB", c.rate/float64(c.threads))
	}
}

// slowPerThread is the rate below which a block of the log takes more than holdMax to fill.
const slowPerThread = float64(4096/48) / (float64(holdMax) / float64(time.Second))
