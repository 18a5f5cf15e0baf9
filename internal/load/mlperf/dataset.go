package mlperf

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// dataset is the files of a training. Its layout is a pure function of the seed and the parameters, so that a load finds what a
// prefill wrote.
//
//	<folder>/train/00000/000017.npz   1000 files per folder
//	<folder>/dataset                  what the files were made of, written last
//	<folder>/part-0001/dataset        the same of a shared data set: of those that one VM wrote
type dataset struct {
	dir           string
	vms, rank     int // VMs that wrote the files, and the place of this one; 1 and 0 unless the data set is shared
	shared        bool
	key           uint64
	files         int
	samplesInFile int
	mean, stdev   float64
}

const (
	filesInFolder = 1000
	chunkBytes    = unit.MiB // that are written at once
	markName      = "dataset"
)

// Purposes of random numbers.
const (
	keySize = iota
	keyContent
	keyOrder
)

func (t *training) dataset(dir string, w *load.Workload) *dataset {
	d := &dataset{dir: dir, files: t.files, samplesInFile: t.model.samplesInFile, mean: t.model.recordBytes, stdev: t.model.recordStdev, vms: t.vms, shared: t.shared}
	key := load.KeyOf(load.Key(w.Seed, uint64(w.Ordinal)), w.Group)
	if t.shared {
		key, d.rank = load.KeyOf(w.Seed, "shared"), w.Remote.Rank
	}
	d.key = load.KeyOf(key, t.model.name)
	return d
}

// part is the folder of what one VM wrote.
func part(dir string, rank int) string { return filepath.Join(dir, fmt.Sprintf("part-%04d", rank+1)) }

func (d *dataset) path(file int) string {
	return filepath.Join(d.dir, "train", fmt.Sprintf("%05d", file/filesInFolder), fmt.Sprintf("%06d.bin", file))
}

// sampleBytes is the size of the samples of a file. As in DLIO's generator, a sample is a square whose two edges are normally
// distributed: the mean of its size is the mean asked for, and its spread is the standard deviation divided by √2. No size of
// the models' parameters comes close to 0.
func (d *dataset) sampleBytes(file int) int64 {
	if d.stdev == 0 {
		return max(1, int64(d.mean))
	}
	key := load.Key(load.Key(d.key, keySize), uint64(file))
	// Box and Muller: two normal numbers from two uniform ones.
	radius := math.Sqrt(-2 * math.Log(1-load.DrawUnit(key, 0)))
	angle := 2 * math.Pi * load.DrawUnit(key, 1)
	edge, spread := math.Sqrt(d.mean), d.stdev/2/math.Sqrt(d.mean)
	one, two := max(1, edge+spread*radius*math.Cos(angle)), max(1, edge+spread*radius*math.Sin(angle))
	return max(1, int64(math.Floor(one)*math.Floor(two)))
}

func (d *dataset) fileBytes(file int) int64 { return d.sampleBytes(file) * int64(d.samplesInFile) }

// mark says what the files were made of.
func (d *dataset) mark() string {
	text := fmt.Sprintf("1 key=%016x files=%d samples=%d mean=%g stdev=%g", d.key, d.files, d.samplesInFile, d.mean, d.stdev)
	if d.shared {
		text += fmt.Sprintf(" vms=%d", d.vms)
	}
	return text + "\n"
}

// markPath is where the VM of a rank notes that its files are complete.
func (d *dataset) markPath(rank int) string {
	if d.shared {
		return filepath.Join(part(d.dir, rank), markName)
	}
	return filepath.Join(d.dir, markName)
}

// wrote reports whether the files of the VM of a rank are complete.
func (d *dataset) wrote(rank int) bool {
	text, err := os.ReadFile(d.markPath(rank))
	return err == nil && string(text) == d.mark()
}

// missing lists the ranks of VMs whose files are not complete.
func (d *dataset) missing() (ranks []int) {
	for rank := range d.vms {
		if !d.wrote(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// generate writes all files that a complete data set has, or of a shared one every file whose turn is this VM's, as the ranks of DLIO do. It
// reports each one.
func (d *dataset) generate(ctx context.Context, wrote func(file int, bytes int64)) error {
	if d.wrote(d.rank) {
		return nil
	}
	if err := os.RemoveAll(d.markPath(d.rank)); err != nil {
		return err
	}
	if err := d.empty(); err != nil {
		return err
	}
	buffer := make([]byte, chunkBytes)
	folder := ""
	for file := d.rank; file < d.files; file += d.vms {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := d.path(file)
		if next := filepath.Dir(path); next != folder {
			folder = next
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return err
			}
		}
		size := d.fileBytes(file)
		key := load.Key(load.Key(d.key, keyContent), uint64(file))
		if err := writeFile(ctx, path, size, key, buffer); err != nil {
			return err
		}
		wrote(file, size)
	}
	return durable.WriteFile(d.markPath(d.rank), []byte(d.mark()), 0o600)
}

// empty removes the files of an earlier data set: all, or of a shared one those whose turn is this VM's.
func (d *dataset) empty() error {
	if !d.shared {
		return os.RemoveAll(filepath.Join(d.dir, "train"))
	}
	old, err := filepath.Glob(filepath.Join(d.dir, "train", "*", "*.bin"))
	if err != nil {
		return err
	}
	for _, path := range old {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".bin"))
		if err != nil || number%d.vms != d.rank {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes random bytes, waits until they are on the medium and drops them from memory.
func writeFile(ctx context.Context, path string, size int64, key uint64, buffer []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closing := f.Close(); err == nil {
			err = closing
		}
	}()
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := buffer[:min(int64(len(buffer)), size-at)]
		fill(piece, key, uint64(at)/8)
		if _, err := f.Write(piece); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", filepath.Base(path), err)
	}
	forget(f)
	return nil
}

// fill writes the random words of a key from the n-th on, so that neither compression nor deduplication reduces them.
func fill(piece []byte, key, n uint64) {
	for len(piece) >= 8 {
		binary.LittleEndian.PutUint64(piece, load.Draw(key, n))
		piece, n = piece[8:], n+1
	}
	if len(piece) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], load.Draw(key, n))
		copy(piece, last[:])
	}
}

// forgetAll drops what earlier loads and the prefill left of the files in memory, so that an epoch begins with reads of the medium.
func (d *dataset) forgetAll(ctx context.Context) error {
	for file := range d.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := os.Open(d.path(file))
		if err != nil {
			return err
		}
		forget(f)
		_ = f.Close()
	}
	return nil
}

// order is a random permutation of the files for one epoch.
func (d *dataset) order(epoch int) []int {
	key := load.Key(load.Key(d.key, keyOrder), uint64(epoch))
	list := make([]int, d.files)
	for i := range list {
		j := int(load.DrawBelow(key, uint64(i), uint64(i+1)))
		list[i] = list[j]
		list[j] = i
	}
	return list
}
