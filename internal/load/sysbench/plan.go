package sysbench

import (
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// plan describes a load or a prefill.
func (c *config) plan(w *load.Workload) (load.Plan, error) {
	p := load.Plan{Engine: c.engine(), BlockBytesMax: c.block, Program: &load.ProgramPlan{Needs: needs()}}
	if c.database != nil {
		return p, c.planDatabase(w, &p)
	}
	if c.test.name == "fileio" {
		if err := c.planFiles(w, &p); err != nil {
			return p, err
		}
	} else if w.Prefill {
		p.Notes = append(p.Notes, fmt.Sprintf("the test %s needs no data: its prefill does nothing", c.test.name))
		return p, nil
	}
	verb := "run"
	if w.Prefill {
		verb = "prepare"
	}
	p.Program.Commands = append(p.Program.Commands, c.command(verb, w).String())
	if !w.Prefill {
		c.planRun(w, &p)
	}
	return p, nil
}

func (c *config) planRun(w *load.Workload, p *load.Plan) {
	p.Jobs, p.Computes = []load.JobPlan{c.job()}, c.database == nil && c.test.name != "fileio"
	if w.Runtime%time.Second != 0 {
		p.Notes = append(p.Notes, "sysbench runs for whole seconds: "+seconds(w.Runtime)+" s")
	}
}

// planDatabase notes where the tables are, how large they are, and the commands of server and sysbench.
func (c *config) planDatabase(w *load.Workload, p *load.Plan) error {
	d := c.database
	p.BytesWritten = -1
	p.Program.Needs = append(p.Program.Needs, d.place.Needs()...)
	data := database.Data{Text: d.made() + ", " + unit.FormatBytes(d.bytes(d.rows)), Bytes: d.bytes(d.rows), FullBytes: d.bytes(d.fullRows)}
	if err := d.place.PlanData(w, p, data); err != nil {
		return err
	}
	for _, command := range d.commands(c, w) {
		p.Program.Commands = append(p.Program.Commands, command.String())
	}
	switch {
	case !w.Prefill:
		c.planRun(w, p)
		if b := d.place.buffers(); b >= d.bytes(d.rows) {
			p.Notes = append(p.Notes, "all data fits into the buffer pool of "+unit.FormatBytes(b)+": once it is there, reads do not reach the disks")
		}
	case d.endpoint:
		p.Notes = append(p.Notes, "the prefill replaces the tables sbtest* of the endpoint")
	default:
		p.BytesWritten = 2 * d.bytes(d.rows) // with the log
	}
	return nil
}

// job is the load as rules see it.
func (c *config) job() load.JobPlan {
	mode := fileModes[c.files.mode]
	j := load.JobPlan{Name: c.test.name, Pattern: c.test.name, QueueDepth: c.threads, DepthAsked: c.threads, Clones: 1,
		BlockMin: c.block, BlockMax: c.block}
	if c.block > 0 {
		j.BlockSizes = unit.FormatBytes(c.block)
	}
	if d := c.database; d != nil {
		j.Pattern, j.RateIOPS, j.Reads, j.Writes, j.Flushes = "transactions", float64(d.rate), d.reads, d.writes, d.writes
	}
	switch c.test.name {
	case "memory":
		j.Pattern, j.Memory = c.engine().Operations[0], true
	case "fileio":
		j.Name, j.Pattern, j.SizeBytes, j.Direct, j.Reads, j.Writes = c.files.mode, mode.pattern, c.files.bytes, c.files.direct, mode.reads, mode.writes
		j.Flushes, j.AlignBytes, j.NoRandomMap = c.files.flushes || c.files.everyFlush && mode.writes, c.block, true
		if mode.writes {
			j.Reducible = 1 // its buffers are zeros
		}
	}
	return j
}

// planFiles notes where the files are and how large they are.
func (c *config) planFiles(w *load.Workload, p *load.Plan) error {
	f := &c.files
	each := f.bytes / int64(f.count)
	p.Program.Data = append(p.Program.Data, fmt.Sprintf("%s: %d files of %s, %s, filled with zeros", f.disk, f.count, unit.FormatBytes(each), unit.FormatBytes(f.bytes)))
	p.Extents = []extent.Extent{{Device: f.disk, Length: f.bytes, Writes: w.Prefill || fileModes[f.mode].writes}}
	if f.bytes != f.fullBytes {
		p.ScaledFrom = f.fullBytes
	}
	if w.Prefill {
		p.BytesWritten = f.bytes
	} else if fileModes[f.mode].writes {
		p.BytesWritten = -1
	}
	if f.flushes && !w.Prefill {
		p.Notes = append(p.Notes, fmt.Sprintf("after the number of requests in fsync_every, sysbench flushes every file: %d fsyncs, which count as operations", f.count))
	}
	if !f.direct {
		p.Notes = append(p.Notes, "direct: off: reads and writes go through the page cache of the VM")
	}
	f.fileSystem.Plan(p)
	return program.CheckFits(w, f.disk, f.bytes, "the files take", "use a larger disk or less data")
}
