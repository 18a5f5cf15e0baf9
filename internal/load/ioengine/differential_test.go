package ioengine_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine"
	"github.com/braggdev/bragg/internal/testreq"
)

// Both sides are dry runs: fio's null engine writes down what it would do, and ours lists its operations. Shapes are
// compared and never single offsets, which differ between versions of fio too.
type dryRuns struct {
	name      string
	fio, ours []ioengine.Operation
}

// secondFile adds a file to that of each job.
const secondFile = "filename=/dev/sdc"

// differences are the rows of behaviour that both have to show, and how they are compared.
var differences = map[string][]func(*testing.T, *dryRuns){
	"rw=randread bs=4k":                                      {sameCount, sameDistinct(0), samePlaces},
	"rw=randread bs=4k norandommap":                          {sameCount, sameDistinct(.03), samePlaces, sameOccupancy},
	"rw=randwrite bs=4k norandommap percentage_random=10":    {sameSequential},
	"rw=randread:8 bs=4k norandommap":                        {sameSequential},
	"rw=randread:8 bs=4k norandommap rw_sequencer=identical": {sameDistinct(.08)},
	"rw=randread bsrange=4k-16k norandommap":                 {sameSizes},
	"rw=randread bssplit=8k/30:4k/30 norandommap":            {sameSizes},
	"rw=randread bssplit=8k/0:4k/30 norandommap":             {sameSizes},
	"rw=randread bssplit=4k/50:6k/50 norandommap":            {sameSizes},
	"rw=randrw bssplit=4k/20:16k/80,8k/50:64k/50 rwmixread=30 norandommap": {
		sameSizesOf(interval.Read), sameSizesOf(interval.Write), sameDirections,
	},
	"rw=randrw bs=4k rwmixread=70":                                                            {sameCount, sameDistinct(0), sameDirections},
	"rw=rw bs=4k rwmixwrite=10":                                                               {sameCount, sameDirections},
	"rw=randread bs=8k ba=4k":                                                                 {sameDistinct(.03), samePlaces},
	"rw=randread bssplit=4k/50:64k/50 io_size=64m":                                            {intended(65536, 0.155, 0.50)},
	"rw=randtrim bs=64k":                                                                      {sameCount, sameDistinct(0), sameDirections},
	"rw=trim bs=1m size=16m":                                                                  {sameCount, sameOffsets, sameDirections},
	"rw=randtrim bssplit=4k/50:64k/50 norandommap":                                            {sameSizes},
	"rw=trimwrite bs=1m size=16m":                                                             {sameCount, sameOffsets, sameDirections, trimThenWrite},
	"rw=randtrimwrite bs=64k":                                                                 {sameCount, sameDistinct(0), trimThenWrite},
	"rw=randtrimwrite bs=64k number_ios=7":                                                    {sameCount, trimThenWrite},
	"rw=randrw bs=4k,64k bs_is_seq_rand=1 percentage_random=50 norandommap":                   {sizesByOrder},
	"rw=randwrite bs=8k,32k bs_is_seq_rand=1 norandommap":                                     {sameCount, sameSizes},
	"rw=read bs=8k,32k bs_is_seq_rand=1":                                                      {sameCount, sameSizes},
	"rw=randread bssplit=4k/50:6k/50 bs_unaligned norandommap":                                {sameSizes},
	"rw=randread bsrange=4k-16k bs_unaligned norandommap":                                     {anySizes},
	"rw=read bs=4k offset=30% size=1m offset_align=1m":                                        {sameCount, sameOffsets},
	"rw=read bs=4k offset=30% size=1m":                                                        {sameCount, sameOffsets},
	"rw=randread bs=4k offset=25% size=50%":                                                   {sameCount, sameDistinct(0), sameSpan},
	"rw=write bs=1m offset_increment=4m numjobs=3 size=1m":                                    {sameCount, sameOffsets},
	"rw=read bs=64k io_size=3m size=1m":                                                       {sameCount, sameOffsets},
	"rw=read bs=64k size=1m loops=2":                                                          {sameCount, sameOffsets},
	"rw=read bs=64k number_ios=5":                                                             {sameCount, sameOffsets},
	"rw=read bs=64k size=1000k":                                                               {sameCount, sameOffsets},
	"rw=read bssplit=4k/50:64k/50 size=1m":                                                    {sameCoverage(0)},
	"rw=read bssplit=4k/20:20k/80 size=1m":                                                    {sameCoverage(0)},
	"rw=write bsrange=512-4k size=1m":                                                         {sameCoverage(0)},
	"rw=write bsrange=512-4k size=1m loops=3":                                                 {sameCoverage(0)},
	"rw=write bsrange=1k-3k bs_unaligned size=1m":                                             {sameCoverage(1024)},
	"rw=write bssplit=1k/50:3000/50 bs_unaligned size=1m":                                     {sameCoverage(1024)},
	"rw=trimwrite bsrange=512-4k size=1m":                                                     {sameCoverage(0), trimThenWrite},
	"rw=trimwrite bssplit=512/25:1k/:2k/:4k/ size=1m":                                         {sameCoverage(0), trimThenWrite},
	"rw=read:512k bs=4k size=64m":                                                             {sameCount, sameOffsets},
	"rw=read:512k bs=1m size=64m":                                                             {sameCount, sameOffsets},
	"rw=read:512k bs=1m size=64m loops=2":                                                     {sameCount, sameOffsets},
	"rw=write:8k bs=4k":                                                                       {sameCount, sameOffsets},
	"rw=write:8k bs=4k loops=3":                                                               {sameCount, sameOffsets},
	"rw=write:8k bs=4k io_size=64m":                                                           {sameCount, sameOffsets},
	"rw=write:8k bs=4k size=1m":                                                               {sameCount, sameOffsets},
	"rw=write:8k bs=4k offset=8m size=1m":                                                     {sameCount, sameOffsets},
	"rw=read:-8k bs=4k size=64m number_ios=100":                                               {sameCount},
	"rw=read bs=48k size=1m loops=2":                                                          {sameCount, sameOffsets},
	"rw=read bs=48k size=1m io_size=3m":                                                       {sameCount, sameOffsets},
	"rw=read bs=64k number_ios=5 loops=3":                                                     {sameCount, sameOffsets},
	"rw=write bs=64k size=256k number_ios=5 loops=3":                                          {sameCount, sameOffsets},
	"rw=randread bs=4k size=1m random_generator=lfsr norandommap":                             {sameCount, sameDistinct(0)},
	"rw=randread bs=4k size=1m random_generator=lfsr norandommap loops=2":                     {sameCount, sameDistinct(0)},
	"rw=read:12k bs=4k io_size=4m":                                                            {sameOffsetsUpTo(1024)},
	"rw=read bs=64k zonemode=strided zonesize=1m zoneskip=7m size=64m io_size=8m":             {sameCount, sameOffsets},
	"rw=randread bs=4k zonemode=strided zonesize=1m zoneskip=7m norandommap io_size=64m":      {sameWindows},
	secondFile + " rw=write bs=1m size=16m file_service_type=roundrobin:4":                    {sameCount, sameFiles, sameOffsets},
	secondFile + " rw=write bs=1m size=16m file_service_type=sequential":                      {sameCount, sameFiles, sameOffsets},
	secondFile + " rw=write bs=1m size=16m openfiles=1":                                       {sameCount, sameFiles, sameOffsets},
	secondFile + " rw=write bs=1m size=16m openfiles=1 file_service_type=roundrobin:3":        {sameCount, sameFiles, sameOffsets},
	secondFile + " rw=write bs=1m size=16m file_service_type=random":                          {sameCount},
	secondFile + " rw=write bs=1m size=8m":                                                    {sameCount, sameFiles, sameOffsets},
	"rw=randread bs=4k io_size=256m random_distribution=zipf:1.2":                             {sameDistinct(.06), sameHot, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=zipf:0.8":                             {sameDistinct(.06), sameHot, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=zipf":                                 {sameDistinct(.06), sameHot, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=zipf:2":                               {sameHot, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=zipf:1.2:0.5":                         {sameHot, sameHottest},
	"rw=randread bs=4k io_size=256m random_distribution=zipf:1.2:1":                           {sameHot, sameHottest},
	"rw=randread bs=4k io_size=256m random_distribution=pareto:0.2":                           {sameOccupancy, sameHot, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=pareto:0.2:0.3":                       {sameOccupancy, sameHottest},
	"rw=randread bs=4k io_size=256m random_distribution=pareto:0.5":                           {sameOccupancy, sameHot},
	"rw=randread bs=4k io_size=256m random_distribution=pareto:0.8":                           {sameOccupancy, sameHot},
	"rw=randread bs=4k io_size=256m random_distribution=normal:0":                             {sameOccupancy, sameHot},
	"rw=randread bs=4k io_size=256m random_distribution=normal:10":                            {sameOccupancy, sameHot, samePlaces, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=normal:30:0.2":                        {sameOccupancy, sameHot},
	"rw=randread bs=4k io_size=256m random_distribution=normal:90":                            {sameOccupancy, sameHot},
	"rw=randread bs=4k io_size=256m random_distribution=zoned:60/10:30/20:8/30:2/40":          {samePlaces, sameOccupancy, noMap},
	"rw=randread bs=4k io_size=256m random_distribution=zoned:60/10:40/10":                    {samePlaces, sameSpan},
	"rw=randread bs=4k io_size=256m random_distribution=zoned:20:30:50/40":                    {samePlaces},
	"rw=randread bs=4k io_size=256m random_distribution=zoned:0/10:100/20":                    {samePlaces, sameSpan},
	"rw=randread bs=4k io_size=256m random_distribution=zoned_abs:60/8m:40/16m":               {samePlaces, sameSpan, sameOccupancy},
	"rw=randrw bs=4k io_size=256m rwmixread=70 random_distribution=zoned:50/25:50/75":         {samePlaces, sameDirections},
	"rw=randread bs=4k offset=16m size=32m io_size=64m random_distribution=zoned:75/50:25/50": {samePlaces, sameSpan},
}

func TestOperationsAreShapedAsInFio(t *testing.T) {
	if testing.Short() {
		t.Skip("needs fio")
	}
	t.Parallel()
	program, dir := testreq.Program(t, "fio"), t.TempDir()
	var names []string
	var text strings.Builder
	for options := range differences {
		names = append(names, options)
	}
	slices.Sort(names) // fio seeds jobs by their order
	for i, options := range names {
		engine := "ioengine=null\nsize=64m" // null looks at no file
		if strings.Contains(options, "%") {
			engine = "ioengine=psync"
		}
		lines := "filename=b\n" + strings.ReplaceAll(options, " ", "\n")
		lines = strings.ReplaceAll(lines, "filename=b\n"+secondFile, "filename=b:c\n")
		fmt.Fprintf(&text, "[j%d]\n%s\nthread=1\nwrite_iolog=log%d\n%s\n", i, engine, i, lines)
	}
	for _, file := range []string{"b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, file), 64*mib); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "--output=said", "-")
	cmd.Stdin, cmd.Dir = strings.NewReader(text.String()), dir
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for i, options := range names {
		runs := dryRuns{
			name: options, fio: iolog(t, filepath.Join(dir, fmt.Sprintf("log%d", i))),
			ours: operations(t, job(options), 1<<20),
		}
		for _, same := range differences[options] {
			same(t, &runs)
		}
	}
}

// iolog reads what fio wrote down.
func iolog(t *testing.T, path string) (all []ioengine.Operation) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	devices := map[string]string{"b": "/dev/sdb", "c": "/dev/sdc"}
	directions := map[string]interval.Direction{"read": interval.Read, "write": interval.Write, "trim": interval.Trim}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 5 {
			continue
		}
		direction, ok := directions[fields[2]]
		offset, err1 := strconv.ParseInt(fields[3], 10, 64)
		size, err2 := strconv.ParseInt(fields[4], 10, 64)
		if !ok || err1 != nil || err2 != nil {
			t.Fatalf("%s: %q", path, line)
		}
		all = append(all, ioengine.Operation{Device: devices[fields[1]], Direction: direction, Offset: offset, Size: size})
	}
	return all
}

func sameCount(t *testing.T, r *dryRuns) {
	if len(r.fio) != len(r.ours) {
		t.Errorf("%s: %d operations, fio does %d", r.name, len(r.ours), len(r.fio))
	}
}

func sameDistinct(tolerance float64) func(*testing.T, *dryRuns) {
	return func(t *testing.T, r *dryRuns) {
		fio, ours := float64(distinct(r.fio)), float64(distinct(r.ours))
		if math.Abs(ours-fio) > tolerance*fio {
			t.Errorf("%s: %g places, in fio %g", r.name, ours, fio)
		}
	}
}

// noMap: a distribution that is not uniform touches blocks again although norandommap is not set.
func noMap(t *testing.T, r *dryRuns) {
	for _, all := range [][]ioengine.Operation{r.fio, r.ours} {
		if first := all[:1000]; distinct(first) == len(first) {
			t.Errorf("%s: no block is touched twice", r.name)
		}
	}
}

// samePlaces compares offsets by Kolmogorov and Smirnov's test of two samples.
func samePlaces(t *testing.T, r *dryRuns) {
	offsets := func(all []ioengine.Operation) (sorted []int64) {
		for _, o := range all {
			sorted = append(sorted, o.Offset)
		}
		slices.Sort(sorted)
		return sorted
	}
	a, b := offsets(r.fio), offsets(r.ours)
	distance, i, k := 0.0, 0, 0
	for i < len(a) && k < len(b) {
		at := min(a[i], b[k])
		for i < len(a) && a[i] == at {
			i++
		}
		for k < len(b) && b[k] == at {
			k++
		}
		distance = max(distance, math.Abs(float64(i)/float64(len(a))-float64(k)/float64(len(b))))
	}
	limit := math.Sqrt(-math.Log(significance/2)/2) * math.Sqrt(1/float64(len(a))+1/float64(len(b)))
	if distance > limit {
		t.Errorf("%s: the distribution functions of offsets differ by %.4f, at most %.4f is chance", r.name, distance, limit)
	}
}

// significance is the probability of a failure although both are drawn from one distribution; its quantile of the
// normal distribution.
const (
	significance     = 1e-4
	significantNorm  = 3.719
	categoryCountMin = 10
)

// sameCounts is the chi-square test of two samples in categories. Small categories are put together.
func sameCounts(t *testing.T, what string, fio, ours map[int64]int) {
	t.Helper()
	keys := map[int64]bool{}
	totalFio, totalOurs := 0, 0
	for k, n := range fio {
		keys[k] = true
		totalFio += n
	}
	for k, n := range ours {
		keys[k] = true
		totalOurs += n
	}
	var sorted []int64
	for k := range keys {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	scale := math.Sqrt(float64(totalOurs) / float64(totalFio))
	sum, degrees, a, b := 0.0, -1.0, 0, 0
	for i, k := range sorted {
		a, b = a+fio[k], b+ours[k]
		if a+b < categoryCountMin && i+1 < len(sorted) {
			continue
		}
		difference := scale*float64(a) - float64(b)/scale
		sum += difference * difference / float64(a+b)
		degrees++
		a, b = 0, 0
	}
	if degrees < 1 {
		if len(sorted) > 1 {
			t.Errorf("%s: %v, in fio %v", what, ours, fio)
		}
		return
	}
	// Wilson, Hilferty: The Distribution of Chi-square, PNAS 17 (1931).
	limit := degrees * math.Pow(1-2/(9*degrees)+significantNorm*math.Sqrt(2/(9*degrees)), 3)
	if sum > limit {
		t.Errorf("%s: chi-square is %.1f, at most %.1f is chance: %v, in fio %v", what, sum, limit, ours, fio)
	}
}

// counted counts operations by what of says about them.
func counted(all []ioengine.Operation, of func(ioengine.Operation) int64) map[int64]int {
	counts := map[int64]int{}
	for _, o := range all {
		counts[of(o)]++
	}
	return counts
}

func sameSizes(t *testing.T, r *dryRuns) {
	size := func(o ioengine.Operation) int64 { return o.Size }
	sameCounts(t, r.name+": sizes", counted(r.fio, size), counted(r.ours, size))
}

func sameSizesOf(d interval.Direction) func(*testing.T, *dryRuns) {
	return func(t *testing.T, r *dryRuns) {
		others := func(o ioengine.Operation) bool { return o.Direction != d }
		sameSizes(t, &dryRuns{
			name: fmt.Sprintf("%s: %v", r.name, d), fio: slices.DeleteFunc(slices.Clone(r.fio), others),
			ours: slices.DeleteFunc(slices.Clone(r.ours), others),
		})
	}
}

func sameDirections(t *testing.T, r *dryRuns) {
	direction := func(o ioengine.Operation) int64 { return int64(o.Direction) }
	sameCounts(t, r.name+": directions", counted(r.fio, direction), counted(r.ours, direction))
}

// sameOccupancy compares how many blocks are touched how often, which does not depend on where the hot ones lie.
func sameOccupancy(t *testing.T, r *dryRuns) {
	occupancy := func(all []ioengine.Operation) map[int64]int {
		often := map[int64]int{}
		for _, n := range counted(all, func(o ioengine.Operation) int64 { return o.Offset }) {
			often[int64(n)]++
		}
		return often
	}
	sameCounts(t, r.name+": blocks by accesses", occupancy(r.fio), occupancy(r.ours))
}

// sameHot compares the shares of the hottest blocks. fio approximates zipf from the third rank on.
func sameHot(t *testing.T, r *dryRuns) {
	for _, percent := range []int{1, 10, 20} {
		n := 16384 * percent / 100
		near(t, fmt.Sprintf("%s: hottest %d %%", r.name, percent), hottest(r.ours, n), hottest(r.fio, n), 0.02)
	}
}

func sameHottest(t *testing.T, r *dryRuns) {
	top := func(all []ioengine.Operation) (at int64) {
		counts := counted(all, func(o ioengine.Operation) int64 { return o.Offset })
		for offset, n := range counts {
			if n > counts[at] {
				at = offset
			}
		}
		return at
	}
	if fio, ours := top(r.fio), top(r.ours); fio != ours {
		t.Errorf("%s: the hottest block is at %d, in fio at %d", r.name, ours, fio)
	}
}

func sameSequential(t *testing.T, r *dryRuns) {
	near(t, r.name+": sequential", sequentialShare(r.ours), sequentialShare(r.fio), 0.012)
}

// sameSpan compares the first and the last block that are touched, up to some blocks that may be missed by chance.
func sameSpan(t *testing.T, r *dryRuns) {
	const chance = 4 * 4096
	span := func(all []ioengine.Operation) (low, high int64) {
		low = math.MaxInt64
		for _, o := range all {
			low, high = min(low, o.Offset), max(high, o.Offset+o.Size)
		}
		return low, high
	}
	low, high := span(r.ours)
	if fioLow, fioHigh := span(r.fio); max(low-fioLow, fioLow-low, high-fioHigh, fioHigh-high) > chance {
		t.Errorf("%s: from %d to %d, in fio from %d to %d", r.name, low, high, fioLow, fioHigh)
	}
}

// sameOffsets compares which offsets of which files are touched how often, whatever the order of clones.
func sameOffsets(t *testing.T, r *dryRuns) { sameOffsetsUpTo(1<<30)(t, r) }

func sameOffsetsUpTo(count int) func(*testing.T, *dryRuns) {
	return func(t *testing.T, r *dryRuns) {
		sorted := func(all []ioengine.Operation) (lines []string) {
			for _, o := range all[:min(len(all), count)] {
				lines = append(lines, fmt.Sprintf("%s %012d %d", o.Device, o.Offset, o.Size))
			}
			slices.Sort(lines)
			return lines
		}
		if fio, ours := sorted(r.fio), sorted(r.ours); !slices.Equal(fio, ours) {
			t.Errorf("%s: %d operations\n%.400s\nin fio %d\n%.400s", r.name, len(ours), strings.Join(ours, "\n"),
				len(fio), strings.Join(fio, "\n"))
		}
	}
}

// sameCoverage compares which parts of the device are touched, and how much is moved. As much as tail may be left over at the
// end, where no block fits.
func sameCoverage(tail int64) func(*testing.T, *dryRuns) {
	return func(t *testing.T, r *dryRuns) {
		covered := func(all []ioengine.Operation) (sectors map[int64]bool, bytes int64) {
			sectors = map[int64]bool{}
			for _, o := range all {
				bytes += o.Size
				for at := o.Offset; at < o.Offset+o.Size; at++ {
					sectors[at] = true
				}
			}
			return sectors, bytes
		}
		fio, fioBytes := covered(r.fio)
		ours, oursBytes := covered(r.ours)
		if difference := max(fioBytes-oursBytes, oursBytes-fioBytes); difference > 4*tail {
			t.Errorf("%s: %d bytes are moved, in fio %d", r.name, oursBytes, fioBytes)
		}
		if difference := max(len(fio)-len(ours), len(ours)-len(fio)); int64(difference) > tail {
			t.Errorf("%s: %d bytes are touched, in fio %d", r.name, len(ours), len(fio))
		}
	}
}

// trimThenWrite: each block is trimmed and then written.
func trimThenWrite(t *testing.T, r *dryRuns) {
	for _, all := range [][]ioengine.Operation{r.fio, r.ours} {
		for i := 0; i+1 < len(all); i += 2 {
			trim, write := all[i], all[i+1]
			if trim.Direction != interval.Trim || write.Direction != interval.Write || trim.Offset != write.Offset || trim.Size != write.Size {
				t.Errorf("%s: operations %d and %d are %v and %v", r.name, i, i+1, trim, write)
				return
			}
		}
	}
}

// sizesByOrder: what goes on where the operation of its direction before ended has the first size, all others the second.
func sizesByOrder(t *testing.T, r *dryRuns) {
	for who, all := range map[string][]ioengine.Operation{"fio": r.fio, "here": r.ours} {
		ends, wrong := map[interval.Direction]int64{}, 0
		for i, o := range all {
			end, known := ends[o.Direction]
			if want := int64(64 << 10); i > 0 && known {
				if o.Offset == end {
					want = 4 << 10
				}
				if o.Size != want {
					wrong++
				}
			}
			ends[o.Direction] = o.Offset + o.Size
		}
		// A random place may happen to be the next one.
		if wrong > len(all)/100 || len(sizeShares(all)) != 2 {
			t.Errorf("%s: %s: %d of %d operations have the size of the other order", r.name, who, wrong, len(all))
		}
	}
}

// anySizes: sizes are not multiples of the smallest. All are equally likely; in fio a quarter of them is the largest.
func anySizes(t *testing.T, r *dryRuns) {
	multiples := func(all []ioengine.Operation) (n int, mean float64) {
		for _, o := range all {
			if o.Size%4096 == 0 {
				n++
			}
			mean += float64(o.Size) / float64(len(all))
			if o.Size < 4096 || o.Size > 16384 {
				t.Fatalf("%s: %v", r.name, o)
			}
		}
		return n, mean
	}
	n, mean := multiples(r.ours)
	if n > len(r.ours)/100 {
		t.Errorf("%s: %d of %d sizes are multiples", r.name, n, len(r.ours))
	}
	near(t, r.name+": mean size in KiB", mean/1024, 10, 0.2)
	if n, _ := multiples(r.fio); n > len(r.fio)/2 {
		t.Errorf("%s: fio makes multiples now: %d of %d", r.name, n, len(r.fio))
	}
}

// sameFiles compares the order of files.
func sameFiles(t *testing.T, r *dryRuns) {
	for i := range min(len(r.fio), len(r.ours)) {
		if r.fio[i].Device != r.ours[i].Device {
			t.Errorf("%s: operation %d goes to %s, in fio to %s", r.name, i, r.ours[i].Device, r.fio[i].Device)
			return
		}
	}
}

// sameWindows compares in which MiB the operations lie.
func sameWindows(t *testing.T, r *dryRuns) {
	window := func(o ioengine.Operation) int64 { return o.Offset / mib }
	sameCounts(t, r.name+": windows", counted(r.fio, window), counted(r.ours, window))
}

// intended is a difference on purpose: the share of operations of a size in fio and here.
func intended(size int64, fio, ours float64) func(*testing.T, *dryRuns) {
	return func(t *testing.T, r *dryRuns) {
		near(t, r.name+": share in fio", sizeShares(r.fio)[size], fio, 0.02)
		near(t, r.name+": share here", sizeShares(r.ours)[size], ours, 0.02)
	}
}
