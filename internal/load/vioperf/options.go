package vioperf

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	disk       string
	fileSystem program.FileSystem // of a disk that is a block device
	threads    int                // 0: one per core
	buffer     int64
	data       int64         // of all threads
	duration   time.Duration // of each test; 0: not set
	crc        bool
	direct     bool
}

// Defaults and bounds.
const (
	bufferDefault    = unit.MiB
	bufferLeast      = 4 * unit.KiB
	bufferMost       = 64 * unit.MiB
	durationDefault  = 5 * time.Minute
	durationLeast    = time.Second
	durationMost     = 24 * time.Hour
	threadsMax       = 1024
	simulatedLatency = 5 * time.Millisecond
	// dataElsewhere is how much is kept where the size of the disk is not known.
	dataElsewhere = 4 * unit.GiB
	// blocksLeast is how many buffers each file has at least.
	blocksLeast = 16
)

var optionNames = []string{"buffer", "crc", "data", "direct", "disk", "duration", "file_system", "mount_options", "threads"}

func parse(w *load.Workload) (*config, error) {
	o := &load.Options{Values: w.Options}
	c := &config{threads: o.Integer("threads", 0, threadsMax), buffer: bufferDefault}
	c.crc, c.direct = toggle(o, "crc"), toggle(o, "direct")
	size := func(name string, least, most int64) int64 {
		n, err := unit.ParseBytes(o.Values[name])
		if err != nil || n < least || n > most {
			o.Fault(name, "%s: %q is not a size from %s to %s", name, o.Values[name], unit.FormatBytes(least), unit.FormatBytes(most))
			return least
		}
		return n / bufferLeast * bufferLeast
	}
	if _, given := o.Values["buffer"]; given {
		c.buffer = size("buffer", bufferLeast, bufferMost)
	}
	if text, given := o.Values["duration"]; given {
		d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil || d < durationLeast || d > durationMost {
			o.Fault("duration", "duration: %q is not a time from 1s to 24h", text)
		} else {
			c.duration = d
		}
	}
	c.readDisk(o, w)
	if _, given := o.Values["data"]; given {
		c.data = size("data", 2*blocksLeast*c.buffer, 1<<50)
		if d, _ := w.Device(c.disk); d.SizeBytes > 0 && c.data > d.SizeBytes {
			o.Fault("data", "data: disk %s has %s", c.disk, unit.FormatBytes(d.SizeBytes))
		}
	}
	if f := w.Scale.Factor; f > 0 && f < 1 {
		c.data = int64(float64(c.data) * f)
	} else if d, _ := w.Device(c.disk); d.SizeBytes > 0 && c.least() > d.SizeBytes {
		o.Fault("threads", "threads: the files of %d need %s at least, and disk %s has %s", max(1, c.threads), unit.FormatBytes(c.least()), c.disk, unit.FormatBytes(d.SizeBytes))
	}
	c.data = max(c.data, c.least())
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if !slices.Contains(optionNames, name) {
			o.Fault(name, "no option %q", name)
		}
	}
	return c, o.Err(w.Name, "docs/guides/vioperf.md lists the options of vioperf")
}

// least is how many bytes the files of all threads need.
func (c *config) least() int64 { return int64(max(1, c.threads)) * 2 * blocksLeast * c.buffer }

// toggle reads an option that is on unless it is switched off.
func toggle(o *load.Options, name string) bool {
	text := strings.ToLower(cmp.Or(o.Values[name], "on"))
	if !slices.Contains([]string{"on", "off", "true", "false"}, text) {
		o.Fault(name, "%s: %q is not on or off", name, text)
	}
	return text == "on" || text == "true"
}

// readDisk finds the disk, and keeps half of it as data: the rest is for other files.
func (c *config) readDisk(o *load.Options, w *load.Workload) {
	c.disk, c.fileSystem = program.ReadDisk(o, w), program.ReadFileSystem(o)
	d, _ := w.Device(c.disk)
	if c.data = d.SizeBytes / 2; c.data == 0 {
		c.data = dataElsewhere
	}
}

// each is how long each test takes in a load of some runtime: a quarter, but not more than was set.
func (c *config) each(runtime time.Duration) time.Duration {
	switch {
	case runtime == 0:
		return cmp.Or(c.duration, durationDefault)
	case c.duration > 0:
		return min(c.duration, runtime/testCount)
	}
	return runtime / testCount
}

func (c *config) access() string {
	if c.direct {
		return "direct"
	}
	return "buffered"
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
