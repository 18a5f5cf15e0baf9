package fiojob

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Options whose values have a grammar of their own.

var readWriteValues = []string{
	"read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "readwrite", "randrw", "trimwrite", "randtrimwrite",
}

// setReadWrite reads "randread" and "randread:8" (operations) or "read:17m", "read:-8k" (bytes to skip).
func setReadWrite(j *Job, a *arg) {
	text, postfix, has := strings.Cut(a.text, ":")
	v, ok := a.choice(strings.TrimSpace(text), readWriteValues, map[string]string{"readwrite": "rw"})
	if !ok {
		return
	}
	j.ReadWrite, j.Sequence, a.option.Exact = v, 0, v
	if !has {
		return
	}
	low := int64(math.MinInt64)
	if strings.HasPrefix(v, "rand") {
		low = 1
	}
	n, err := a.bytesNumber(postfix)
	// fio reads the number of operations without its suffix.
	plain, _, known := exactDigits(postfix)
	if low == 1 && known && a.p.options.Reading == Exact {
		n, err = number{value: plain}, nil
	} else if low == 1 && known && err == nil && plain != n.value {
		n.literal = strconv.FormatInt(plain, 10)
	}
	if err != nil || n.isPct || n.value < low {
		a.bad("want operations in a row after rand…: or bytes to skip after a sequential pattern")
		return
	}
	if n.literal != "" {
		a.meant(fmt.Sprintf("%s:%d", v, n.value), v+":"+n.literal)
	}
	j.Sequence = n.value
	a.option.Exact = fmt.Sprintf("%s:%d", v, n.value)
}

// filesMax bounds the files of one job.
const filesMax = 1024

// setFilename reads a list with colons between names; a backslash makes a colon part of a name.
func setFilename(j *Job, a *arg) {
	a.blank()
	a.drives()
	exact := a.p.options.Reading == Exact
	names := splitNames(a.text, exact)
	if ended := splitNames(a.text, true); !exact && len(ended) < len(names) {
		a.warn("fio-reads-otherwise", fmt.Sprintf("%s names %d files; fio itself ends the list at the empty name and reads %d",
			a.written(), len(names), len(ended)), "write "+a.option.Key+"="+JoinFilenames(names, nil))
	}
	switch {
	case len(names) == 0:
		a.bad("want the name of a file or device")
		return
	case len(names) > filesMax:
		a.bad(fmt.Sprintf("%d files, at most %d are possible", len(names), filesMax))
		return
	}
	switch {
	case a.repeated, exact: // a second line in one section adds to the first; in fio also one of [global]
		names = append(slices.Clone(j.Filenames), names...)
	case len(j.Filenames) > 0 && (a.p.options.Reading == Strict || !slices.Equal(j.Filenames, names)):
		// Real fio adds a job's files to those of [global]. A job that names a device of its own is hardly meant to write the
		// global one too.
		a.warn("filename-replaces", "filename replaces that of [global]; fio itself uses the files of both",
			"remove filename from [global]")
	}
	j.Filenames = names
	a.option.Exact = JoinFilenames(names, nil)
}

// setDirectory reads a list of folders like that of files; it is cut into its parts where names are made.
func setDirectory(j *Job, a *arg) {
	a.blank()
	a.drives()
	j.Directory = a.text
}

func JoinFilenames(names []string, rename func(string) string) string {
	out := make([]string, len(names))
	for i, n := range names {
		if rename != nil {
			n = rename(n)
		}
		out[i] = strings.ReplaceAll(n, ":", `\:`)
	}
	list := strings.Join(out, ":")
	// Blanks at the ends of a value do not belong to it, and colons there separate nothing.
	if strings.TrimLeftFunc(list, unicode.IsSpace) != list {
		list = ":" + list
	}
	if strings.TrimRightFunc(list, unicode.IsSpace) != list {
		list += ":"
	}
	return list
}

const blockBytesMax = 1 << 30

// setBlockSize reads bs. fio's ba follows bs unless it is set.
var setBlockSize = bytesTriple(func(j *Job) *[3]int64 { return &j.BlockSize }, 1, blockBytesMax)

// setBlockRange reads bsrange: low-high for each direction, swapped when reversed.
func setBlockRange(j *Job, a *arg) {
	a.triple(func(d Direction, text string) (string, bool) {
		lowText, highText, found := strings.Cut(text, "-")
		if !found {
			lowText, highText, found = strings.Cut(text, ":")
		}
		if !found {
			a.bad("want low-high, such as 4k-16k")
			return "", false
		}
		low, ok := a.number(lowText, 1, blockBytesMax)
		if !ok {
			return "", false
		}
		high, ok := a.number(highText, 1, blockBytesMax)
		if !ok {
			return "", false
		}
		low, high = min(low, high), max(low, high)
		j.BlockRange[d] = [2]int64{low, high}
		return FormatBytes(low) + "-" + FormatBytes(high), true
	})
}

// splitsMax is fio's bound on the entries of one direction.
const splitsMax = 64

// setBlockSplit reads bssplit: size/percent:size/percent for each direction. Entries without a percentage, or with 0,
// share what the others leave; where the sum stays below 100, the entry with the largest share (of several, the last) takes
// the rest, as it does in fio.
func setBlockSplit(j *Job, a *arg) {
	a.triple(func(d Direction, text string) (string, bool) {
		splits, exact, ok := a.splits(strings.TrimLeft(text, " \t"))
		if ok {
			j.BlockSplit[d] = splits
		}
		return exact, ok
	})
}

func (a *arg) splits(text string) (out []Split, exact string, ok bool) {
	var open []int
	var printed []string
	sum := 0.0
	for entry := range strings.SplitSeq(text, ":") {
		sizeText, shareText, _ := strings.Cut(entry, "/")
		n, err := a.bytesNumber(sizeText)
		if err != nil || n.isPct || n.value < 1 || n.value > blockBytesMax {
			a.bad(fmt.Sprintf("want size/percent:size/percent, and not %q", entry))
			return nil, "", false
		}
		a.explain(n)
		share := 0
		if shareText = strings.TrimSuffix(strings.TrimSpace(shareText), "%"); a.p.options.Reading == Exact {
			whole, _, _ := exactDigits(shareText)
			share = int(min(max(whole, 0), percentMax))
		} else if shareText != "" {
			share, err = strconv.Atoi(shareText)
			if err != nil || share < 0 || share > 100 {
				a.bad(fmt.Sprintf("want a whole percentage from 0 to 100, and not %q", shareText))
				return nil, "", false
			}
		}
		if share == 0 {
			open = append(open, len(out))
			printed = append(printed, FormatBytes(n.value)+"/")
		} else {
			printed = append(printed, fmt.Sprintf("%s/%d", FormatBytes(n.value), share))
		}
		sum += float64(share)
		out = append(out, Split{Bytes: n.value, Percent: float64(share)})
		if len(out) > splitsMax {
			a.bad(fmt.Sprintf("more than %d block sizes", splitsMax))
			return nil, "", false
		}
	}
	return out, strings.Join(printed, ":"), a.fillSplits(out, open, sum)
}

// fillSplits makes the shares sum to 100.
func (a *arg) fillSplits(out []Split, open []int, sum float64) bool {
	switch {
	case sum > 100 && a.p.options.Reading == Exact:
		cutSplits(out)
	case sum > 100:
		a.bad(fmt.Sprintf("the percentages add up to %g", sum))
		return false
	case len(open) > 0:
		for _, i := range open {
			out[i].Percent = (100 - sum) / float64(len(open))
		}
	case sum < 100:
		largest := 0
		for i, s := range out {
			if s.Percent >= out[largest].Percent {
				largest = i
			}
		}
		out[largest].Percent += 100 - sum
		a.warn("percentages-incomplete", fmt.Sprintf("the percentages add up to %g; the largest share, of blocks of %s, takes the rest",
			sum, FormatBytes(out[largest].Bytes)), "let them add up to 100")
	}
	return true
}

// cutSplits does what fio does where shares add up to more than 100: the smaller ones count first.
func cutSplits(out []Split) {
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(out[a].Percent, out[b].Percent) })
	left := 100.0
	for _, i := range order {
		out[i].Percent = min(out[i].Percent, left)
		left -= out[i].Percent
	}
}

// setMix reads rwmixread and rwmixwrite. "70:30" means its first value; fio takes the last.
func setMix(write bool) apply {
	return func(j *Job, a *arg) {
		text := a.text
		if first, last, found := strings.Cut(text, ":"); found {
			text = first
			a.meant(first, last)
		}
		v, ok := a.number(text, 0, percentMax)
		if !ok {
			return
		}
		a.option.Exact = strconv.FormatInt(v, 10)
		if write {
			v = 100 - v
		}
		j.RWMixRead = int(v)
	}
}

// setFileSize reads filesize. Of a range each file gets a length of its own, where files are made: a device has its own.
func setFileSize(j *Job, a *arg) {
	if low, high, found := strings.Cut(a.seen, "-"); found {
		if n, err := readNumber(low, j.kbBase); err == nil {
			if m, err := readNumber(high, j.kbBase); err == nil && !n.isPct && !m.isPct {
				if !a.p.options.Host {
					a.delegate("devices have their own length; a range of them is for files that are made")
				}
				a.explain(n)
				a.explain(m)
				j.FileSize, j.FileSizeMin = Size{Bytes: max(n.value, m.value), Set: true}, min(n.value, m.value)
				if j.FileSizeMin < 1 {
					a.bad("want at least 1")
				}
				return
			}
		}
	}
	j.FileSizeMin = 0
	size(func(j *Job) *Size { return &j.FileSize })(j, a)
	if j.FileSize == (Size{Set: true}) && a.text != "" && strings.Trim(a.text, "0") == "" {
		a.bad("want at least 1")
	}
}

var nativeEngines = map[string]bool{
	"libaio": true, "io_uring": true, "psync": true, "sync": true, "vsync": true, "pvsync": true, "pvsync2": true,
	"mmap": true, "posixaio": true, "null": true,
}

// localEngines perform file operations other than I/O, or compute; only for jobs of this machine.
var localEngines = map[string]bool{
	"filecreate": true, "filestat": true, "filedelete": true, "dircreate": true, "dirstat": true, "dirdelete": true,
	"falloc": true, "ftruncate": true, "cpuio": true,
}

// Engines returns the names of the I/O engines of jobs that run on this machine, in alphabetic order.
func Engines() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, list := range []map[string]bool{nativeEngines, localEngines} {
			for name := range list {
				if !yield(name) {
					return
				}
			}
		}
	})
}

// Other I/O engines of fio: deviceEngines do I/O on the files of a job, which only fio does; farEngines need services or
// hardware of their own; codeEngines run code; fileEngines create, cut, rearrange and delete files.
const (
	deviceEngines = " mtd sg splice "
	farEngines    = " cpuio net netsplice gfapi gfapi_async io_uring_cmd nbd rdma rados rbd pmemblk dev-dax libpmem http " +
		"libhdfs nfs libiscsi xnvme libblkio-virtio-blk-vfio-pci windowsaio solarisaio guasi binject "
	codeEngines = " exec external "
	fileEngines = " falloc ftruncate filecreate filestat filedelete dircreate dirstat dirdelete e4defrag "
)

func setEngine(j *Job, a *arg) {
	name, _, _ := strings.Cut(a.text, ":")
	in := func(list string) bool { return name != "" && strings.Contains(list, " "+name+" ") }
	switch {
	case nativeEngines[a.text] || a.p.options.Host && localEngines[a.text]:
		if a.raw.blankBefore {
			a.refusedByFio(a.text)
		}
	case in(codeEngines) || strings.ContainsAny(a.text, "/"):
		a.option.Class, a.option.Why = Refused, "it runs a program or loads foreign code"
		a.problem("refused-option", fmt.Sprintf("ioengine=%s is refused: %s", a.text, a.option.Why), "use libaio or io_uring")
		return
	case in(fileEngines):
		a.option.Class, a.option.Why = Refused, "it creates, cuts or deletes files, and workloads use devices"
		a.problem("refused-option", fmt.Sprintf("ioengine=%s is refused: %s", a.text, a.option.Why), "")
		return
	case in(deviceEngines):
		a.delegate("only fio has this I/O engine")
	case in(farEngines):
		a.delegate("only fio has this I/O engine, and it uses neither files nor devices of the job")
	default:
		a.bad("no such I/O engine")
		return
	}
	j.IOEngine = a.text
}

// checkPercentiles looks at percentile_list, whose text the report reads: up to 20 numbers of 0 to 100.
func checkPercentiles(j *Job, a *arg) {
	list := strings.FieldsFunc(a.text, func(r rune) bool { return r == ':' || r == ',' || r == ' ' })
	for _, text := range list {
		if p, err := strconv.ParseFloat(text, 64); err != nil || !(p >= 0 && p <= 100) {
			a.bad(fmt.Sprintf("%s: want percentiles of 0 to 100", text))
			return
		}
	}
	if len(list) > percentilesMax {
		a.bad(fmt.Sprintf("%d percentiles, and the list holds %d", len(list), percentilesMax))
	}
}

// percentilesMax is how many percentiles the list of fio's report holds.
const percentilesMax = 20

// delegate says that only fio knows this value of an option that is otherwise native.
func (a *arg) delegate(why string) { a.option.Class, a.option.Why = Delegate, why }

// noBlank warns about a blank in front of one of fio's words.
func noBlank(_ *Job, a *arg) {
	if a.raw.blankBefore {
		a.refusedByFio(a.text)
	}
}

// setZoneSkip reads zoneskip; what a percentage of it means is fio's own.
func setZoneSkip(j *Job, a *arg) {
	size(func(j *Job) *Size { return &j.ZoneSkip })(j, a)
	if j.ZoneSkip.Percent > 0 {
		a.delegate("only fio reads zoneskip as a percentage")
	}
}

// noFile refuses values that open a file of the machine: the part behind mark is a path.
func noFile(mark string) apply {
	return func(j *Job, a *arg) {
		if a.kind == kindChoice {
			noBlank(j, a)
		} else {
			a.blank()
		}
		if strings.Contains(a.text, mark) {
			a.option.Class, a.option.Why = Refused, "it opens a file that is not of the job"
			a.problem("refused-option", fmt.Sprintf("%s=%s is refused: %s", a.option.Key, a.text, a.option.Why), "")
		}
	}
}

// setBuffered is the inverse of direct.
func setBuffered(j *Job, a *arg) {
	buffered := !j.Direct
	a.boolean(&buffered, false)
	j.Direct = !buffered
}

// setSeed reads randseed. fio has no seed above the largest signed number; we have.
func setSeed(j *Job, a *arg) {
	if v, err := strconv.ParseUint(a.text, 10, 64); err == nil && v > math.MaxInt64 && a.p.options.Reading == Meant {
		j.RandSeed = v
	} else if v, ok := a.number(a.seen, 0, math.MaxInt64); ok {
		j.RandSeed = uint64(v)
		a.option.Exact = strconv.FormatInt(v, 10)
	}
}

// UsesFiles reports whether an I/O engine of fio works on the files and devices that a job names, and on nothing else.
func UsesFiles(engine string) bool {
	return nativeEngines[engine] || strings.Contains(deviceEngines, " "+engine+" ")
}
