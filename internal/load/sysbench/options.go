package sysbench

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	test       *test
	threads    int
	percentile int
	values     []value // options of the test, as sysbench names them
	block      int64   // bytes of one operation; 0: it moves none
	files      files
	database   *oltpData // nil without one
}

// value is an option of sysbench.
type value struct{ name, text string }

// files are those of the test fileio.
type files struct {
	disk       string // device of the folder
	fileSystem program.FileSystem
	count      int
	bytes      int64 // of all together
	fullBytes  int64 // without the scale of a rehearsal
	mode       string
	direct     bool
	flushes    bool // fsync is an operation
	everyFlush bool // fsync is a part of each write
}

// test is one of sysbench's tests.
type test struct {
	name    string
	options []option
	read    func(o *load.Options, c *config, w *load.Workload) // what other options of this test mean; may be nil
	gauged  []interval.Gauge                                   // beside the percentile
	silent  bool                                               // its reports have no percentile
	reads   bool                                               // of a database: it reads rows
	writes  bool                                               // and changes some
}

// option is an option of a test: its name here and in sysbench, and its values.
type option struct {
	name, flag string
	most       int      // of a number
	zero       bool     // a number may be 0
	words      []string // allowed; nil: a number
}

var onOff = []string{"on", "off"}

var tests = slices.Concat([]*test{
	{name: "cpu", options: []option{{name: "max_prime", flag: "cpu-max-prime", most: 10_000_000}}},
	{name: "memory", silent: true, read: readMemory, options: []option{
		{name: "operation", flag: "memory-oper", words: []string{"write", "read", "none"}},
		{name: "access", flag: "memory-access-mode", words: []string{"seq", "rnd"}},
		{name: "scope", flag: "memory-scope", words: []string{"global", "local"}},
		{name: "huge_pages", flag: "memory-hugetlb", words: onOff}}},
	{name: "threads", options: []option{{name: "yields", flag: "thread-yields", most: 1_000_000}, {name: "locks", flag: "thread-locks", most: 10_000}}},
	{name: "fileio", read: readFiles, gauged: []interval.Gauge{{Name: "reads", Unit: "MiB/s"}, {Name: "writes", Unit: "MiB/s"}, {Name: "fsyncs", Unit: "1/s"}},
		options: []option{
			{name: "io_mode", flag: "file-io-mode", words: []string{"sync", "mmap"}},
			{name: "fsync_mode", flag: "file-fsync-mode", words: []string{"fsync", "fdatasync"}},
			{name: "fsync_all", flag: "file-fsync-all", words: onOff}, {name: "fsync_end", flag: "file-fsync-end", words: onOff}}},
}, oltpTests)

// Bounds and defaults. Those of the tests are sysbench's own, stated so that a newer version changes nothing.
const (
	threadsMax        = 10_000
	percentileDefault = 95
	memoryBlock       = unit.KiB
	memoryBlockMax    = unit.GiB
	fileBlock         = 16 * unit.KiB
	fileBlockMax      = 64 * unit.MiB
	filesDefault      = 128
	filesMax          = 10_000
	fsyncEveryDefault = 100
)

// fileModes are the tests of files, by what they do.
var fileModes = map[string]struct {
	pattern       string
	reads, writes bool
}{
	"seqrd": {"read", true, false}, "seqwr": {"write", false, true}, "seqrewr": {"write", false, true},
	"rndrd": {"randread", true, false}, "rndwr": {"randwrite", false, true}, "rndrw": {"randrw", true, true},
}

const hint = "docs/guides/sysbench.md lists the options of sysbench"

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{threads: o.Integer("threads", 1, threadsMax), percentile: o.Integer("percentile", percentileDefault, 100)}
	var names []string
	for _, t := range tests {
		if names = append(names, t.name); t.name == w.Options["test"] {
			c.test = t
		}
	}
	if c.test == nil {
		o.Choice("test", names)
		return nil, o.Err(w.Name, hint)
	}
	for _, p := range c.test.options {
		c.readOption(o, p)
	}
	if c.test.read != nil {
		c.test.read(o, c, w)
	}
	if w.ConfigName != "" {
		o.Fault("config_file", "sysbench reads no config_file")
	}
	if c.database == nil { // others may be settings of its server
		c.refuseOthers(o)
		if len(w.Remote.Peers) > 0 {
			o.Fault("", "the test %s has no server, and the workload has a server_group", c.test.name)
		}
	}
	return c, o.Err(w.Name, hint)
}

// optionNames are those of the test.
func (c *config) optionNames() []string {
	known := []string{"test", "threads", "percentile"}
	for _, p := range c.test.options {
		known = append(known, p.name)
	}
	if c.database != nil {
		return append(known, databaseOptions...)
	}
	return append(known, moreOptions[c.test.name]...)
}

func (c *config) refuseOthers(o *load.Options) {
	known := c.optionNames()
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if slices.Contains(known, name) {
			continue
		}
		also := ""
		if near := diag.Nearest(name, known); near != "" {
			also = " (did you mean \"" + near + "\"?)"
		}
		o.Fault(name, "%s has no option %q%s", c.test.name, name, also)
	}
}

// moreOptions are the options that the read functions of tests take.
var moreOptions = map[string][]string{
	"memory": {"block_size"}, "fileio": {"block_size", "data", "files", "mode", "disk", "direct", "fsync_every", "rw_ratio", "file_system", "mount_options"},
}

func (c *config) add(name, text string) { c.values = append(c.values, value{name, text}) }

func (c *config) readOption(o *load.Options, p option) {
	text, given := o.Values[p.name]
	switch {
	case !given:
	case p.zero && text == "0":
		c.add(p.flag, text)
	case p.words == nil:
		c.add(p.flag, strconv.Itoa(o.Integer(p.name, 1, p.most)))
	case !slices.Contains(p.words, text):
		o.Choice(p.name, p.words)
	default:
		c.add(p.flag, text)
	}
}

// blockSize reads a block size, which memory wants to be a power of two.
func blockSize(o *load.Options, fallback, most int64) int64 {
	text, given := o.Values["block_size"]
	if !given {
		return fallback
	}
	size, err := unit.ParseBytes(text)
	if err != nil || size < 512 || size > most || size&(size-1) != 0 {
		o.Fault("block_size", "block_size: %q is not a power of two from 512 to %s", text, unit.FormatBytes(most))
		return fallback
	}
	return size
}

// memoryTotal is more than a load moves: by its default of 100 GiB the test would end early.
const memoryTotal = "1000000T"

func readMemory(o *load.Options, c *config, _ *load.Workload) {
	c.block = blockSize(o, memoryBlock, memoryBlockMax)
	c.add("memory-block-size", strconv.FormatInt(c.block, 10))
	c.add("memory-total-size", memoryTotal)
}

func readFiles(o *load.Options, c *config, w *load.Workload) {
	f := &c.files
	c.block, f.count = blockSize(o, fileBlock, fileBlockMax), o.Integer("files", filesDefault, filesMax)
	f.mode = o.Values["mode"]
	if _, known := fileModes[f.mode]; !known {
		o.Choice("mode", slices.Sorted(maps.Keys(fileModes)))
	}
	f.disk, f.fileSystem = program.ReadDisk(o, w), program.ReadFileSystem(o)
	f.readSize(o, c.block, w.Scale)
	c.add("file-num", strconv.Itoa(f.count))
	c.add("file-total-size", strconv.FormatInt(f.bytes, 10))
	c.add("file-block-size", strconv.FormatInt(c.block, 10))
	c.add("file-test-mode", f.mode)
	switch direct := cmp.Or(o.Values["direct"], "on"); {
	case !slices.Contains(onOff, direct):
		o.Fault("direct", "direct: %q is not on, off", direct)
	case direct == "on":
		f.direct = true
		c.add("file-extra-flags", "direct")
	}
	if f.direct && o.Values["io_mode"] == "mmap" {
		o.Fault("io_mode", "io_mode: mmap goes through the page cache, which needs direct: off")
	}
	every := fsyncEveryDefault
	f.everyFlush = o.Values["fsync_all"] == "on"
	if o.Values["fsync_every"] == "never" || f.everyFlush {
		every = 0
	} else {
		every = o.Integer("fsync_every", every, 1_000_000_000)
	}
	c.add("file-fsync-freq", strconv.Itoa(every))
	f.flushes = fileModes[f.mode].writes && every > 0
	if text, given := o.Values["rw_ratio"]; given {
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ratio > 0 && ratio <= 1000) || f.mode != "rndrw" {
			o.Fault("rw_ratio", "rw_ratio: %q is not a number of reads per write, of mode rndrw", text)
		}
		c.add("file-rw-ratio", strconv.FormatFloat(ratio, 'f', -1, 64))
	}
}

// readSize makes all files of one size, a multiple of the block.
func (f *files) readSize(o *load.Options, block int64, scale load.Scale) {
	size, err := load.DataSize(o.Values["data"])
	if o.Values["data"] == "" {
		o.Fault("", "the size of the files is missing: data, such as 10GiB")
		return
	}
	if err != nil || size < 1 {
		o.Fault("data", "data: %q is not a size such as 10GiB", o.Values["data"])
		return
	}
	whole := func(size int64) int64 { return max(1, size/int64(f.count)/block) * block * int64(f.count) }
	f.fullBytes, f.bytes = whole(size), whole(size)
	if scale.Factor > 0 && scale.Factor < 1 {
		f.bytes = whole(int64(float64(size) * scale.Factor))
	}
}

// moved is how many bytes an operation moves.
func (c *config) moved() int64 {
	if slices.Contains(c.values, value{"memory-oper", "none"}) {
		return 0
	}
	return c.block
}

// operations are what the test counts. I/O operations have no names.
func (t *test) operations(c *config) []string {
	mode := fileModes[c.files.mode]
	switch {
	case t.name == "memory":
		for _, v := range c.values {
			if v.name == "memory-oper" {
				return []string{"memory " + v.text}
			}
		}
		return []string{"memory write"}
	case c.database != nil:
		return []string{"transaction"}
	case t.name != "fileio":
		return []string{t.name + " event"}
	case !mode.writes:
		return nil
	}
	var names []string
	if mode.reads {
		names = append(names, "read")
	}
	names = append(names, "write")
	if c.files.flushes {
		names = append(names, "fsync")
	}
	return []string{strings.Join(names, " or ")}
}

// gauges are what reports have beside counts. The percentile is of one second and cannot be merged.
func (t *test) gauges(c *config) []interval.Gauge {
	if t.silent {
		return nil
	}
	list := append([]interval.Gauge{{Name: "p" + strconv.Itoa(c.percentile) + " of a second", Unit: "ms"}}, t.gauged...)
	if c.database != nil && !c.database.endpoint {
		list = append(list, c.database.kind.gauges...)
	}
	return list
}
