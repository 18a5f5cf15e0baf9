package fiojob

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
)

// Options with their own grammar of values.

var readWriteValues = []string{
	"read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "readwrite", "randrw", "trimwrite", "randtrimwrite",
}

// setReadWrite reads "randread" and "randread:8" (operations) or "read:17m", "read:-8k" (bytes to skip).
func setReadWrite(j *Job, a *arg) {
	text, postfix, has := strings.Cut(a.Text, ":")
	v, ok := a.Choice(strings.TrimSpace(text), readWriteValues, map[string]string{"readwrite": "rw"})
	if !ok {
		return
	}
	j.ReadWrite, j.Sequence, a.Option.Exact = v, 0, v
	if !has {
		return
	}
	low := int64(math.MinInt64)
	if strings.HasPrefix(v, "rand") {
		low = 1
	}
	n, err := a.BytesNumber(postfix)
	// fio reads the number of operations without its suffix.
	plain, _, known := syntax.ExactDigits(postfix)
	if low == 1 && known && a.Reading == syntax.Exact {
		n, err = syntax.MeantNumber{Value: plain}, nil
	} else if low == 1 && known && err == nil && plain != n.Value {
		n.Literal = strconv.FormatInt(plain, 10)
	}
	if err != nil || n.IsPercent || n.Value < low {
		a.Bad("want operations in a row after rand…: or bytes to skip after a sequential pattern")
		return
	}
	if n.Literal != "" {
		a.Meant(fmt.Sprintf("%s:%d", v, n.Value), v+":"+n.Literal)
	}
	j.Sequence = n.Value
	a.Option.Exact = fmt.Sprintf("%s:%d", v, n.Value)
}

// filesMax bounds the files of one job.
const filesMax = 1024

// setFilename reads a list with colons between names; a backslash makes a colon part of a name.
func setFilename(j *Job, a *arg) {
	a.Blank()
	drives(a)
	exact := a.Reading == syntax.Exact
	names := syntax.SplitNames(a.Text, exact)
	if ended := syntax.SplitNames(a.Text, true); !exact && len(ended) < len(names) {
		a.Warn("fio-reads-otherwise", fmt.Sprintf("%s names %d files; fio itself ends the list at the empty name and reads %d",
			a.Written(), len(names), len(ended)), "write "+a.Option.Key+"="+syntax.JoinFilenames(names, nil))
	}
	switch {
	case len(names) == 0:
		a.Bad("want the name of a file or device")
		return
	case len(names) > filesMax:
		a.Bad(fmt.Sprintf("%d files, at most %d are possible", len(names), filesMax))
		return
	}
	switch {
	case a.repeated, exact: // a second line in a section adds to the first; in fio also to one of [global]
		names = append(slices.Clone(j.Filenames), names...)
	case len(j.Filenames) > 0 && (a.Reading == syntax.Strict || !slices.Equal(j.Filenames, names)):
		// fio adds a job's files to those of [global]. A job that names its own device is hardly meant to write to the
		// global one too.
		a.Warn("filename-replaces", "filename replaces that of [global]; fio itself uses the files of both",
			"remove filename from [global]")
	}
	j.Filenames = names
	a.Option.Exact = syntax.JoinFilenames(names, nil)
}

// setDirectory reads a list of folders in the format of filename; it is split where names are made.
func setDirectory(j *Job, a *arg) {
	a.Blank()
	drives(a)
	j.Directory = a.Text
}

// setBlockSize reads bs. As in fio, ba follows bs unless it is set.
var setBlockSize = bytesTriple(func(j *Job) *[3]int64 { return &j.BlockSize }, 1, syntax.BlockBytesMax)

// setBlockRange reads bsrange: low-high for each direction, swapped when reversed.
func setBlockRange(j *Job, a *arg) {
	a.Triple(func(d int, text string) (string, bool) {
		lowText, highText, found := strings.Cut(text, "-")
		if !found {
			lowText, highText, found = strings.Cut(text, ":")
		}
		if !found {
			a.Bad("want low-high, such as 4k-16k")
			return "", false
		}
		low, ok := a.Number(lowText, 1, syntax.BlockBytesMax)
		if !ok {
			return "", false
		}
		high, ok := a.Number(highText, 1, syntax.BlockBytesMax)
		if !ok {
			return "", false
		}
		low, high = min(low, high), max(low, high)
		j.BlockRange[d] = [2]int64{low, high}
		return syntax.FormatBytes(low) + "-" + syntax.FormatBytes(high), true
	})
}

// setBlockSplit reads bssplit: size/percent:size/percent for each direction. Entries without a percentage, or with 0, share
// the remainder; if the sum is below 100, the entry with the largest share (the last of several) gets the rest, as in fio.
func setBlockSplit(j *Job, a *arg) {
	a.Triple(func(d int, text string) (string, bool) {
		splits, exact, ok := syntax.Splits(a.Value, strings.TrimLeft(text, " \t"))
		if ok {
			j.BlockSplit[d] = splits
		}
		return exact, ok
	})
}

// setMix reads rwmixread and rwmixwrite. Of "70:30" it uses the first value; fio uses the last.
func setMix(write bool) apply {
	return func(j *Job, a *arg) {
		text := a.Text
		if first, last, found := strings.Cut(text, ":"); found {
			text = first
			a.Meant(first, last)
		}
		v, ok := a.Number(text, 0, syntax.PercentMax)
		if !ok {
			return
		}
		a.Option.Exact = strconv.FormatInt(v, 10)
		if write {
			v = 100 - v
		}
		j.RWMixRead = int(v)
	}
}

// setFileSize reads filesize. With a range, each created file draws its length; a device keeps its size.
func setFileSize(j *Job, a *arg) {
	if low, high, found := strings.Cut(a.Seen, "-"); found {
		if n, err := syntax.ReadNumber(low, j.kbBase); err == nil {
			if m, err := syntax.ReadNumber(high, j.kbBase); err == nil && !n.IsPercent && !m.IsPercent {
				if !a.options.Host {
					a.Delegate("devices have their own length; a range of them is for files that are made")
				}
				a.Explain(n)
				a.Explain(m)
				j.FileSize, j.FileSizeMin = Size{Bytes: max(n.Value, m.Value), Set: true}, min(n.Value, m.Value)
				if j.FileSizeMin < 1 {
					a.Bad("want at least 1")
				}
				return
			}
		}
	}
	j.FileSizeMin = 0
	size(func(j *Job) *Size { return &j.FileSize })(j, a)
	if j.FileSize == (Size{Set: true}) && a.Text != "" && strings.Trim(a.Text, "0") == "" {
		a.Bad("want at least 1")
	}
}

var nativeEngines = map[string]bool{
	"libaio": true, "io_uring": true, "psync": true, "sync": true, "vsync": true, "pvsync": true, "pvsync2": true,
	"mmap": true, "posixaio": true, "null": true,
}

// localEngines perform file operations other than I/O, or only compute; they are available only to jobs of this machine.
var localEngines = map[string]bool{
	"filecreate": true, "filestat": true, "filedelete": true, "dircreate": true, "dirstat": true, "dirdelete": true,
	"falloc": true, "ftruncate": true, "cpuio": true,
}

// Engines returns the names of the I/O engines of jobs that run on this machine, in alphabetic order.
func Engines() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(nativeEngines)), maps.Keys(localEngines))
	slices.Sort(names)
	return names
}

// Other I/O engines of fio: deviceEngines do I/O on the files of a job, but only fio has them; farEngines need their own
// services or hardware; codeEngines run code; fileEngines create, truncate, rearrange and delete files.
const (
	deviceEngines = " mtd sg splice "
	farEngines    = " cpuio net netsplice gfapi gfapi_async io_uring_cmd nbd rdma rados rbd pmemblk dev-dax libpmem http " +
		"libhdfs nfs libiscsi xnvme libblkio-virtio-blk-vfio-pci windowsaio solarisaio guasi binject "
	codeEngines = " exec external "
	fileEngines = " falloc ftruncate filecreate filestat filedelete dircreate dirstat dirdelete e4defrag "
)

func setEngine(j *Job, a *arg) {
	name, _, _ := strings.Cut(a.Text, ":")
	in := func(list string) bool { return name != "" && strings.Contains(list, " "+name+" ") }
	switch {
	case nativeEngines[a.Text] || a.options.Host && localEngines[a.Text]:
		if a.Raw.BlankBefore {
			a.RefusedByFio(a.Text)
		}
	case in(codeEngines) || strings.ContainsAny(a.Text, "/"):
		a.Refuse("it runs a program or loads foreign code", "use libaio or io_uring")
		return
	case in(fileEngines):
		a.Refuse("it creates, cuts or deletes files, and workloads use devices", "")
		return
	case in(deviceEngines):
		a.Delegate("only fio has this I/O engine")
	case in(farEngines):
		a.Delegate("only fio has this I/O engine, and it uses neither files nor devices of the job")
	default:
		a.Bad("no such I/O engine")
		return
	}
	j.IOEngine = a.Text
}

// checkPercentiles checks percentile_list, whose text the report reads: up to 20 numbers from 0 to 100.
func checkPercentiles(j *Job, a *arg) {
	list := strings.FieldsFunc(a.Text, func(r rune) bool { return r == ':' || r == ',' || r == ' ' })
	for _, text := range list {
		if p, err := strconv.ParseFloat(text, 64); err != nil || !(p >= 0 && p <= 100) {
			a.Bad(fmt.Sprintf("%s: want percentiles of 0 to 100", text))
			return
		}
	}
	if len(list) > percentilesMax {
		a.Bad(fmt.Sprintf("%d percentiles, and the list holds %d", len(list), percentilesMax))
	}
}

// percentilesMax is the maximum length of the list in fio.
const percentilesMax = 20

// noBlank warns about a blank before one of fio's words.
func noBlank(_ *Job, a *arg) {
	if a.Raw.BlankBefore {
		a.RefusedByFio(a.Text)
	}
}

// setZoneSkip reads zoneskip; only fio itself supports a percentage.
func setZoneSkip(j *Job, a *arg) {
	size(func(j *Job) *Size { return &j.ZoneSkip })(j, a)
	if j.ZoneSkip.Percent > 0 {
		a.Delegate("only fio reads zoneskip as a percentage")
	}
}

// noFile refuses values that open a file of the machine: the part after mark is a path.
func noFile(mark string) apply {
	return func(j *Job, a *arg) {
		if a.Kind == syntax.KindChoice {
			noBlank(j, a)
		} else {
			a.Blank()
		}
		if strings.Contains(a.Text, mark) {
			a.Refuse("it opens a file that is not of the job", "")
		}
	}
}

// setSeed reads randseed. fio's seeds end at the largest signed number; Bragg's do not.
func setSeed(j *Job, a *arg) {
	if v, err := strconv.ParseUint(a.Text, 10, 64); err == nil && v > math.MaxInt64 && a.Reading == syntax.Meant {
		j.RandSeed = v
	} else if v, ok := a.Number(a.Seen, 0, math.MaxInt64); ok {
		j.RandSeed = uint64(v)
		a.Option.Exact = strconv.FormatInt(v, 10)
	}
}

// UsesFiles reports whether an I/O engine of fio uses only the files and devices that a job names.
func UsesFiles(engine string) bool {
	return nativeEngines[engine] || strings.Contains(deviceEngines, " "+engine+" ")
}
