package mlperf

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/braggdev/bragg/internal/durable"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// dataset is the files of a training. Its layout is a pure function of the seed and the parameters, so that a load finds what a
// prefill wrote.
//
//	<room>/train/00000/000017.npz   1000 files per folder
//	<room>/dataset                  what the files were made of, written last
type dataset struct {
	dir           string
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
	key := w.Seed
	for _, part := range []int{w.Ordinal, 0} {
		key = load.Key(key, uint64(part))
	}
	return &dataset{dir: dir, key: load.KeyOf(key, t.model.name), files: t.files, samplesInFile: t.model.samplesInFile,
		mean: t.model.recordBytes, stdev: t.model.recordStdev}
}

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
	return fmt.Sprintf("1 key=%016x files=%d samples=%d mean=%g stdev=%g\n", d.key, d.files, d.samplesInFile, d.mean, d.stdev)
}

func (d *dataset) complete() bool {
	text, err := os.ReadFile(filepath.Join(d.dir, markName))
	return err == nil && string(text) == d.mark()
}

// generate writes all files that a complete data set has, and reports each one.
func (d *dataset) generate(ctx context.Context, wrote func(file int, bytes int64)) error {
	if d.complete() {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(d.dir, markName)); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "train")); err != nil {
		return err
	}
	buffer := make([]byte, chunkBytes)
	for file := range d.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := d.path(file)
		if file%filesInFolder == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
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
	return durable.WriteFile(filepath.Join(d.dir, markName), []byte(d.mark()), 0o600)
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
