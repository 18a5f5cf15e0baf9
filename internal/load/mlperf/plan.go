package mlperf

import (
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/extent"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/unit"
)

func (c *config) plan(w *load.Workload) (load.Plan, error) {
	if c.saves() {
		return c.planCheckpoints(w)
	}
	t := &c.train
	p := load.Plan{Engine: c.engine(&w.Remote), InStep: inStep(&w.Remote), BlockBytesMax: t.transfer, Notes: []string{
		fmt.Sprintf("data set in %s: %d files of %s", c.place, t.files, unit.FormatBytes(int64(t.fileBytes())))}}
	if factor := w.Scale.Factor; factor > 0 && factor < 1 {
		p.ScaledFrom = int64(float64(t.fullFiles) * float64(t.model.samplesInFile) * t.fullRecord)
	}
	p.Extents = c.extents(t.bytes(), &p)
	if err := c.fits(w, p.Extents); err != nil {
		return p, err
	}
	if w.Prefill {
		p.BytesWritten = t.mostBytes() / int64(t.vms)
		if t.shared {
			p.Notes = append(p.Notes, fmt.Sprintf("the data set is shared by %d VMs; each writes its part of the files", t.vms))
		}
		p.Jobs = []load.JobPlan{{Name: "data set", Pattern: "write", BlockSizes: unit.FormatBytes(chunkBytes), QueueDepth: 1, DepthAsked: 1, Clones: 1,
			SizeBytes: t.bytes(), Writes: true, BlockMin: chunkBytes, BlockMax: chunkBytes, Flushes: true}}
		return p, nil
	}
	for i := range p.Extents {
		p.Extents[i].Writes = false
	}
	p.Jobs = []load.JobPlan{{Name: t.model.name, Pattern: "files", BlockSizes: unit.FormatBytes(t.transfer), QueueDepth: t.model.readThreads,
		DepthAsked: t.model.readThreads, Clones: t.accelerators, SizeBytes: t.bytes(), Reads: true, BlockMin: 1, BlockMax: t.transfer, Pauses: true}}
	p.Notes = append(p.Notes, t.describe()...)
	p.MemoryBytes = t.transfer * int64(t.model.readThreads*t.accelerators)
	p.Timed = t.search
	p.Notes = append(p.Notes, t.inStep(&w.Remote)...)
	p.Notes = append(p.Notes, "readers use the page cache, as data loaders do; it is emptied of the data set before the load, not between epochs")
	if len(t.changed) > 0 {
		p.Notes = append(p.Notes, t.open())
	}
	if text := t.small(0); text != "" {
		p.Notes = append(p.Notes, text)
	}
	return p, nil
}

func (t *training) open() string {
	return strings.Join(t.changed, ", ") + ": set by the scenario, which the closed division of MLPerf Storage does not permit"
}

// inStep says how the VMs of a load depend on each other.
func (t *training) inStep(r *load.Remote) []string {
	if !inStep(r) {
		return nil
	}
	return []string{fmt.Sprintf("one training on %d VMs with %d accelerators: each step ends on all VMs together", r.VMs, r.VMs*t.accelerators), t.reads(r)}
}

// reads says whose files the VMs of a load read, "" if there is one VM.
func (t *training) reads(r *load.Remote) string {
	switch {
	case !inStep(r):
		return ""
	case t.shared:
		return "dataset shared: one shuffled order of all files, of which each accelerator reads the samples of its rank"
	}
	return "dataset own: each VM has and shuffles its own share of the data set; in MLPerf Storage all accelerators read one data set, which dataset: shared does"
}

// describe is what a load does, in words.
func (t *training) describe() []string {
	each := fmt.Sprintf("%s on %s: batches of %d samples of %s, %s of computation, %d readers, %s per accelerator at full use", t.model.name, t.on.name,
		t.on.batch, unit.FormatBytes(int64(t.model.recordBytes)), t.on.compute, t.model.readThreads, unit.FormatRate(t.on.samplesPerSecond()*t.model.recordBytes))
	if t.search {
		return []string{each, fmt.Sprintf("search from 1 to %s, %d steps of each number, AU at least %g %%", textio.Plural(t.accelerators, "accelerator"), t.searchSteps, 100*t.model.threshold)}
	}
	return []string{each, fmt.Sprintf("%s, %s of %d steps, AU at least %g %%", textio.Plural(t.accelerators, "accelerator"), textio.Plural(t.epochs, "epoch"), t.steps(t.accelerators), 100*t.model.threshold)}
}

// mostBytes is more than any seed writes.
func (t *training) mostBytes() int64 {
	return int64(1.2*float64(t.bytes())) + int64(4*t.model.recordStdev)
}

func (c *config) extents(bytes int64, into *load.Plan) []extent.Extent {
	if c.folder != "" {
		return nil
	}
	c.fileSystem.Plan(into)
	return []extent.Extent{{Device: c.disk, Length: bytes, Writes: true}}
}

// fits compares the data with the disk: what the VM has in place of it on its host.
func (c *config) fits(w *load.Workload, list []extent.Extent) error {
	for _, e := range list {
		if err := program.CheckFits(w, e.Device, e.Length, "the data takes", "use larger disks or less data"); err != nil {
			return err
		}
	}
	return nil
}

// small states by how much the data set is below the rule, with the memory of a host or, as long as that is unknown, without it.
func (t *training) small(memory int64) string {
	steps := stepsByRule(t.on.name)
	need, byMemory := samplesByRule(steps, t.on.batch, t.accelerators*t.vms, memory*int64(t.vms), t.model.recordBytes)
	if t.files*t.model.samplesInFile >= need {
		return ""
	}
	why := fmt.Sprintf("%d steps of %d accelerators", steps, t.accelerators*t.vms)
	if byMemory {
		why = fmt.Sprintf("%d times the %s of memory of this machine", memoryMultiple, unit.FormatBytes(memory))
		if t.vms > 1 {
			why += fmt.Sprintf(", which each of %d VMs may have", t.vms)
		}
	}
	return fmt.Sprintf("the data set has %s, and the rule of MLPerf Storage is at least %s (%s): memory may serve its reads",
		unit.FormatBytes(t.bytes()), unit.FormatBytes(int64(float64(need)*t.model.recordBytes)), why)
}
