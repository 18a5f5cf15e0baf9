package mlperf

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	place
	train  training
	saving checkpointing // of a workload with the option checkpoint, which does not train
}

// place is where the data goes.
type place struct {
	disk       string
	fileSystem program.FileSystem // of a disk that is a block device
	folder     string             // or the name of a folder that the machine defines
}

// training is a training workload.
type training struct {
	model        model // with the record length, samples per file and reader threads of the options
	on           accelerator
	accelerators int  // the most, in a search
	search       bool // for the largest number of accelerators
	searchSteps  int  // of each number of accelerators
	files        int
	fullFiles    int // without the scale of a rehearsal
	fullRecord   float64
	epochs       int
	prefetch     int
	transfer     int64
	// vms is the number of VMs that share the data set, 1 if each has its own.
	vms     int
	shared  bool     // the data set: each accelerator of all VMs reads its samples by its rank among all of them
	changed []string // options that the closed division does not permit to change
}

// checkpointing writes and reads checkpoints.
type checkpointing struct {
	model    language
	ranks    int // of all VMs
	vms      int
	count    int
	fraction float64
}

// saves reports whether the workload is about checkpoints.
func (c *config) saves() bool { return c.saving.model.name != "" }

// Bounds.
const (
	acceleratorsMax   = 1024
	readThreadsMax    = 32   // of the rules
	readersMax        = 2048 // each may take a thread
	searchMaxDefault  = 64
	searchStepDefault = 20
	epochsMax         = 1000
	transferDefault   = 256 * unit.KiB
	transferMax       = 64 * unit.MiB
	// sizeMax keeps products with numbers of samples and of VMs within 63 bits.
	sizeMax = 1 << 50
)

var optionNames = []string{"accelerator", "accelerators", "accelerators_max", "batch_size", "checkpoint", "checkpoints", "computation_time", "data",
	"dataset", "disk", "epochs", "file_system", "files", "folder", "fraction", "host_memory", "model", "mount_options", "prefetch_size", "ranks",
	"read_threads", "record_length", "record_length_stdev", "samples_per_file", "search_steps", "transfer_size"}

// openOptions are parameters that the closed division fixes.
var openOptions = []string{"batch_size", "computation_time", "epochs", "record_length", "record_length_stdev", "samples_per_file"}

// reader reads options and remembers what is wrong with them.
type reader struct {
	load.Options
	vms int // of the load
}

func (r *reader) size(name string, fallback int64) int64 {
	text, given := r.Values[name]
	if !given {
		return fallback
	}
	read := unit.ParseBytes
	if name == "data" || name == "host_memory" {
		read = load.DataSize
	}
	n, err := read(text)
	if err != nil || n < 1 || n > sizeMax {
		r.Fault(name, "%s: %q is not a size such as 100GiB, at most %s", name, text, unit.FormatBytes(sizeMax))
		return fallback
	}
	return n
}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	r := &reader{Options: load.Options{Values: w.Options}, vms: max(1, w.Remote.VMs)}
	c := &config{}
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if !slices.Contains(optionNames, name) {
			hint := ""
			if near := diag.Nearest(name, optionNames); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			r.Fault(name, "no option %q%s", name, hint)
		}
	}
	if w.ConfigName != "" {
		r.Fault("", "%s takes no config_file", Name)
	}
	r.readPlace(&c.place, w)
	if _, saves := w.Options["checkpoint"]; saves {
		r.readCheckpointing(&c.saving)
	} else {
		r.readModel(&c.train)
		r.readTraining(&c.train, w)
	}
	if err := r.Err(w.Name, "docs/guides/ml-training.md lists the options of "+Name); err != nil {
		return nil, err
	}
	return c, nil
}

var folderPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,30}$`)

// readPlace finds the disk, or the folder.
func (r *reader) readPlace(p *place, w *load.Workload) {
	p.folder = r.Values["folder"]
	if p.folder != "" {
		if !folderPattern.MatchString(p.folder) {
			r.Fault("folder", "folder: %q is not a name of lower-case letters, digits, - and _", p.folder)
		}
		for _, name := range append([]string{"disk"}, program.FileSystemNames...) {
			if _, given := r.Values[name]; given {
				r.Fault(name, "%s and folder exclude each other", name)
			}
		}
		return
	}
	p.disk, p.fileSystem = program.ReadDisk(&r.Options, w), program.ReadFileSystem(&r.Options)
}

func (r *reader) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if slices.Contains(optionNames, name) && !slices.Contains(names, name) {
			r.Fault(name, "%s has no effect on checkpoints", name)
		}
	}
}

func (r *reader) readCheckpointing(s *checkpointing) {
	s.vms = r.vms
	r.only("checkpoint", "checkpoints", "disk", "file_system", "folder", "fraction", "mount_options", "ranks")
	var found bool
	if s.model, found = findLanguage(r.Values["checkpoint"]); !found {
		r.Choice("checkpoint", languageNames())
	}
	s.ranks = r.Integer("ranks", s.model.ranks, max(1, s.model.ranks))
	if s.ranks < s.vms {
		r.Fault("ranks", "ranks: %d ranks for %d VMs: each VM has at least one rank of a checkpoint", s.ranks, s.vms)
	}
	s.count = r.Integer("checkpoints", checkpointsDefault, 1000)
	s.fraction = 1
	if text, given := r.Values["fraction"]; given {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if s.fraction = f; err != nil || !(f > 0 && f <= 1) {
			r.Fault("fraction", "fraction: %q is not above 0 and at most 1", text)
		}
	}
}

func (r *reader) readModel(t *training) {
	name, given := r.Values["model"]
	var found bool
	if t.model, found = findModel(name); !given || !found {
		r.Choice("model", modelNames())
		return
	}
	kind := cmp.Or(r.Values["accelerator"], acceleratorType)
	if t.on, found = t.model.on(kind); !found {
		r.Fault("accelerator", "accelerator: %q is not v100, a100 or h100", kind)
	}
	t.on.batch = r.Integer("batch_size", t.on.batch, 1<<16)
	if text, given := r.Values["computation_time"]; given {
		d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil || d < 100*time.Microsecond || d > time.Hour {
			r.Fault("computation_time", "computation_time: %q is not a time such as 636ms", text)
		}
		t.on.compute = d
	}
	if length := r.size("record_length", 0); length > 0 {
		t.model.recordStdev *= float64(length) / t.model.recordBytes
		t.model.recordBytes = float64(length)
	}
	if text, given := r.Values["record_length_stdev"]; given {
		n, err := unit.ParseBytes(text)
		if err != nil || n < 0 || float64(n) > t.model.recordBytes {
			r.Fault("record_length_stdev", "record_length_stdev: %q is not a size up to record_length", text)
		}
		t.model.recordStdev = float64(n)
	}
	t.model.samplesInFile = r.Integer("samples_per_file", t.model.samplesInFile, 1<<20)
	t.model.readThreads = r.Integer("read_threads", t.model.readThreads, readThreadsMax)
	for _, name := range openOptions {
		if _, given := r.Values[name]; given {
			t.changed = append(t.changed, name)
		}
	}
}

func (r *reader) readTraining(t *training, w *load.Workload) {
	if t.model.name == "" || t.on.name == "" {
		return
	}
	for _, name := range []string{"checkpoints", "fraction", "ranks"} {
		if _, given := r.Values[name]; given {
			r.Fault(name, "%s needs the option checkpoint", name)
		}
	}
	if t.search = r.Values["accelerators"] == "auto"; t.search {
		t.accelerators = r.Integer("accelerators_max", searchMaxDefault, acceleratorsMax)
		t.searchSteps = r.Integer("search_steps", searchStepDefault, 1<<20)
	} else {
		t.accelerators = r.Integer("accelerators", 1, acceleratorsMax)
		for _, name := range []string{"accelerators_max", "search_steps"} {
			if _, given := r.Values[name]; given {
				r.Fault(name, "%s needs accelerators: auto", name)
			}
		}
	}
	r.readDataset(t)
	t.epochs = r.Integer("epochs", epochsDefault, epochsMax)
	t.prefetch = r.Integer("prefetch_size", prefetchDefault, 1<<16)
	if t.transfer = r.size("transfer_size", transferDefault); t.transfer < 4*unit.KiB || t.transfer > transferMax {
		r.Fault("transfer_size", "transfer_size: %s is not from 4KiB to 64MiB", unit.FormatBytes(t.transfer))
	}
	if t.accelerators*t.model.readThreads > readersMax {
		r.Fault("", "%d accelerators with %d readers each: one VM runs at most %d readers", t.accelerators, t.model.readThreads, readersMax)
	}
	r.readFiles(t, w)
}

// Values of the option dataset.
const (
	datasetOwn    = "own"
	datasetShared = "shared"
)

func (r *reader) readDataset(t *training) {
	t.vms = 1
	switch text := cmp.Or(r.Values["dataset"], datasetOwn); {
	case text == datasetOwn:
	case text != datasetShared:
		r.Fault("dataset", "dataset: %q is not own or shared", text)
	case r.Values["folder"] == "":
		r.Fault("dataset", "dataset: shared needs the option folder: the name of a folder that is the same mount in all VMs")
	default:
		t.vms, t.shared = r.vms, true
	}
}

// readFiles takes the number of files, or computes it from a size, or by the rule from the memory of the hosts.
func (r *reader) readFiles(t *training, w *load.Workload) {
	given := 0
	for _, name := range []string{"files", "data", "host_memory"} {
		if _, has := r.Values[name]; has {
			given++
		}
	}
	if given != 1 {
		r.Fault("", "the size of the data set is missing or ambiguous: one of files, data (100GiB) or host_memory (64GiB: the memory of one VM's host, for the rule)")
		return
	}
	fileBytes := t.fileBytes()
	t.files = r.Integer("files", 0, filesMax)
	if size := r.size("data", 0); size > 0 {
		t.files = int(math.Ceil(float64(size) / fileBytes))
	}
	if memory := r.size("host_memory", 0); memory > 0 {
		samples, _ := samplesByRule(stepsByRule(t.on.name), t.on.batch, t.accelerators*t.vms, memory*int64(t.vms), t.model.recordBytes)
		t.files = (samples + t.model.samplesInFile - 1) / t.model.samplesInFile
	}
	if t.files > filesMax {
		r.Fault("", "the data set has %d files, at most %d are allowed: raise samples_per_file", t.files, filesMax)
		return
	}
	if size := float64(t.files) * fileBytes; size > sizeMax {
		r.Fault("", "the data set has %.3g bytes, at most %s are allowed", size, unit.FormatBytes(sizeMax))
		return
	}
	t.fullFiles, t.fullRecord = t.files, t.model.recordBytes
	t.shrink(w.Scale.Factor)
	if t.steps(t.accelerators) < 2 {
		r.Fault("", "%d samples are less than two steps of %d accelerators with batches of %d", t.files*t.model.samplesInFile, t.accelerators*t.vms, t.on.batch)
	}
	if least, steps := 2*t.ahead()+2, min(t.searchSteps, t.steps(t.accelerators)); t.search && steps < least {
		r.Fault("search_steps", "search_steps: a trial has %d steps and needs %d, because %d batches are read ahead: raise search_steps, use more data or fewer accelerators_max",
			steps, least, t.ahead())
	}
}

// filesRehearsed is the least number of files of a rehearsal, enough for two steps of any accelerator.
const filesRehearsed = 4096

// shrink fits the data set to a rehearsal: fewer files and then smaller samples. It does not depend on accelerators, so that workloads
// with different numbers of them share a data set.
func (t *training) shrink(factor float64) {
	if factor <= 0 || factor >= 1 || t.files == 0 {
		return
	}
	files := max(int(float64(t.files)*factor), min(t.files, filesRehearsed))
	smaller := factor * float64(t.files) / float64(files)
	t.model.recordBytes, t.model.recordStdev = max(1, t.model.recordBytes*smaller), t.model.recordStdev*smaller
	t.files = files
}

// fileBytes is the mean size of a file.
func (t *training) fileBytes() float64 { return t.model.recordBytes * float64(t.model.samplesInFile) }

// bytes is the expected size of the data set.
func (t *training) bytes() int64 { return int64(float64(t.files) * t.fileBytes()) }

// steps is the number of steps of an epoch with that many accelerators in each VM: batches that are not full are left out.
func (t *training) steps(accelerators int) int {
	return t.files * t.model.samplesInFile / t.on.batch / (accelerators * t.vms)
}

// ahead is how many batches the readers of an accelerator hold before its first step.
func (t *training) ahead() int { return t.model.readThreads * t.queue() }

// queue is how many batches each reader of an accelerator reads or holds ready.
func (t *training) queue() int { return max(1, (t.prefetch+t.model.readThreads-1)/t.model.readThreads) }
