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
	disk   string // device beside whose file the data is
	folder string // or the name of a folder that the machine defines
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
	changed      []string // options that the closed division does not permit to change
}

// checkpointing writes and reads checkpoints.
type checkpointing struct {
	model    language
	ranks    int
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
)

var optionNames = []string{"accelerator", "accelerators", "accelerators_max", "batch_size", "checkpoint", "checkpoints", "computation_time", "data",
	"disk", "epochs", "files", "folder", "fraction", "host_memory", "model", "prefetch_size", "ranks", "read_threads", "record_length",
	"record_length_stdev", "samples_per_file", "search_steps", "transfer_size"}

// openOptions are parameters that the closed division fixes.
var openOptions = []string{"batch_size", "computation_time", "epochs", "record_length", "record_length_stdev", "samples_per_file"}

// reader reads options and remembers what is wrong with them.
type reader struct {
	options map[string]string
	faults  []string
}

func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *reader) integer(name string, fallback, most int) int {
	text, given := r.options[name]
	if !given {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		r.fault("%s: %q is not a number from 1 to %d", name, text, most)
		return fallback
	}
	return n
}

func (r *reader) size(name string, fallback int64) int64 {
	text, given := r.options[name]
	if !given {
		return fallback
	}
	n, err := unit.ParseBytes(text)
	if err != nil || n < 1 {
		r.fault("%s: %q is not a size such as 100GiB", name, text)
		return fallback
	}
	return n
}

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	r := &reader{options: w.Options}
	c := &config{}
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if !slices.Contains(optionNames, name) {
			hint := ""
			if near := diag.Nearest(name, optionNames); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			r.fault("no option %q%s", name, hint)
		}
	}
	if w.ConfigName != "" {
		r.fault("%s takes no config_file", Name)
	}
	r.readPlace(&c.place, w)
	if _, saves := w.Options["checkpoint"]; saves {
		r.readCheckpointing(&c.saving)
	} else {
		r.readModel(&c.train)
		r.readTraining(&c.train, w)
	}
	if len(r.faults) == 0 {
		return c, nil
	}
	return nil, &diag.Error{
		Code: "bad-generator-option", Exit: diag.ExitData,
		Message: fmt.Sprintf("options of workload %q: %s", w.Name, strings.Join(r.faults, "; ")),
		Hint:    "docs/guides/ml-training.md lists the options of " + Name,
	}
}

var folderPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,30}$`)

// readPlace finds the disk, or the folder.
func (r *reader) readPlace(p *place, w *load.Workload) {
	p.folder = r.options["folder"]
	if p.folder != "" {
		if !folderPattern.MatchString(p.folder) {
			r.fault("folder: %q is not a name of lower-case letters, digits, - and _", p.folder)
		}
		if r.options["disk"] != "" {
			r.fault("disk and folder exclude each other")
		}
		return
	}
	var names []string
	for _, d := range w.Devices {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		r.fault("the VM group has no data disk, and there is no folder")
		return
	}
	if p.disk = cmp.Or(r.options["disk"], names[0]); !slices.Contains(names, p.disk) {
		r.fault("disk %q: the VM group has %s", p.disk, strings.Join(names, ", "))
	}
}

func (r *reader) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(r.options)) {
		if slices.Contains(optionNames, name) && !slices.Contains(names, name) {
			r.fault("%s has no effect on checkpoints", name)
		}
	}
}

func (r *reader) readCheckpointing(s *checkpointing) {
	r.only("checkpoint", "checkpoints", "disk", "folder", "fraction", "ranks")
	var found bool
	if s.model, found = findLanguage(r.options["checkpoint"]); !found {
		r.fault("checkpoint: %q is not %s", r.options["checkpoint"], strings.Join(languageNames(), ", "))
	}
	s.ranks = r.integer("ranks", s.model.ranks, max(1, s.model.ranks))
	s.count = r.integer("checkpoints", checkpointsDefault, 1000)
	s.fraction = 1
	if text, given := r.options["fraction"]; given {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if s.fraction = f; err != nil || !(f > 0 && f <= 1) {
			r.fault("fraction: %q is not above 0 and at most 1", text)
		}
	}
}

func (r *reader) readModel(t *training) {
	name, given := r.options["model"]
	var found bool
	if t.model, found = findModel(name); !given || !found {
		r.fault("model: %q is not %s", name, strings.Join(modelNames(), ", "))
		return
	}
	kind := cmp.Or(r.options["accelerator"], acceleratorType)
	if t.on, found = t.model.on(kind); !found {
		r.fault("accelerator: %q is not v100, a100 or h100", kind)
	}
	t.on.batch = r.integer("batch_size", t.on.batch, 1<<16)
	if text, given := r.options["computation_time"]; given {
		d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil || d < 100*time.Microsecond || d > time.Hour {
			r.fault("computation_time: %q is not a time such as 636ms", text)
		}
		t.on.compute = d
	}
	if length := r.size("record_length", 0); length > 0 {
		t.model.recordStdev *= float64(length) / t.model.recordBytes
		t.model.recordBytes = float64(length)
	}
	if text, given := r.options["record_length_stdev"]; given {
		n, err := unit.ParseBytes(text)
		if err != nil || n < 0 || float64(n) > t.model.recordBytes {
			r.fault("record_length_stdev: %q is not a size up to record_length", text)
		}
		t.model.recordStdev = float64(n)
	}
	t.model.samplesInFile = r.integer("samples_per_file", t.model.samplesInFile, 1<<20)
	t.model.readThreads = r.integer("read_threads", t.model.readThreads, readThreadsMax)
	for _, name := range openOptions {
		if _, given := r.options[name]; given {
			t.changed = append(t.changed, name)
		}
	}
}

func (r *reader) readTraining(t *training, w *load.Workload) {
	if t.model.name == "" || t.on.name == "" {
		return
	}
	for _, name := range []string{"checkpoints", "fraction", "ranks"} {
		if _, given := r.options[name]; given {
			r.fault("%s needs the option checkpoint", name)
		}
	}
	if t.search = r.options["accelerators"] == "auto"; t.search {
		t.accelerators = r.integer("accelerators_max", searchMaxDefault, acceleratorsMax)
		t.searchSteps = r.integer("search_steps", searchStepDefault, 1<<20)
	} else {
		t.accelerators = r.integer("accelerators", 1, acceleratorsMax)
		for _, name := range []string{"accelerators_max", "search_steps"} {
			if _, given := r.options[name]; given {
				r.fault("%s needs accelerators: auto", name)
			}
		}
	}
	t.epochs = r.integer("epochs", epochsDefault, epochsMax)
	t.prefetch = r.integer("prefetch_size", prefetchDefault, 1<<16)
	if t.transfer = r.size("transfer_size", transferDefault); t.transfer < 4*unit.KiB || t.transfer > transferMax {
		r.fault("transfer_size: %s is not from 4KiB to 64MiB", unit.FormatBytes(t.transfer))
	}
	if t.accelerators*t.model.readThreads > readersMax {
		r.fault("%d accelerators with %d readers each: one VM runs at most %d readers", t.accelerators, t.model.readThreads, readersMax)
	}
	r.readFiles(t, w)
}

// readFiles takes the number of files, or computes it from a size, or by the rule from the memory of the hosts.
func (r *reader) readFiles(t *training, w *load.Workload) {
	given := 0
	for _, name := range []string{"files", "data", "host_memory"} {
		if _, has := r.options[name]; has {
			given++
		}
	}
	if given != 1 {
		r.fault("the size of the data set is missing or ambiguous: one of files, data (100GiB) or host_memory (64GiB: the memory of one VM's host, for the rule)")
		return
	}
	fileBytes := t.fileBytes()
	t.files = r.integer("files", 0, filesMax)
	if size := r.size("data", 0); size > 0 {
		t.files = int(math.Ceil(float64(size) / fileBytes))
	}
	if memory := r.size("host_memory", 0); memory > 0 {
		samples, _ := samplesByRule(stepsByRule(t.on.name), t.on.batch, t.accelerators, memory, t.model.recordBytes)
		t.files = (samples + t.model.samplesInFile - 1) / t.model.samplesInFile
	}
	if t.files > filesMax {
		r.fault("the data set has %d files, at most %d are allowed: raise samples_per_file", t.files, filesMax)
		return
	}
	t.fullFiles, t.fullRecord = t.files, t.model.recordBytes
	t.shrink(w.Scale.Factor)
	if t.steps(t.accelerators) < 2 {
		r.fault("%d samples are less than two steps of %d accelerators with batches of %d", t.files*t.model.samplesInFile, t.accelerators, t.on.batch)
	}
	if least, steps := 2*t.ahead()+2, min(t.searchSteps, t.steps(t.accelerators)); t.search && steps < least {
		r.fault("search_steps: a trial has %d steps and needs %d, because %d batches are read ahead: raise search_steps, use more data or fewer accelerators_max",
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

// steps is the number of steps of an epoch: batches that are not full are left out.
func (t *training) steps(accelerators int) int {
	return t.files * t.model.samplesInFile / t.on.batch / accelerators
}

// ahead is how many batches the readers of an accelerator hold before its first step.
func (t *training) ahead() int { return t.model.readThreads * t.queue() }

// queue is how many batches each reader of an accelerator reads or holds ready.
func (t *training) queue() int { return max(1, (t.prefetch+t.model.readThreads-1)/t.model.readThreads) }
