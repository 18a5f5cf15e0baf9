package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/cavaliergopher/cpio"
	"github.com/klauspost/compress/zstd"

	"github.com/braggdev/bragg/internal/guest"
)

// writeInitramfs makes the archive that the kernel unpacks into its first file system: the agent as /init, and modules. Its
// content does not depend on time, place or user.
func writeInitramfs(agent []byte, modules guest.Modules, files map[string]module) ([]byte, error) {
	list, err := json.Marshal(modules)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := cpio.NewWriter(&archive)
	var failed error
	add := func(name string, mode cpio.FileMode, text []byte) {
		if failed != nil {
			return
		}
		failed = w.WriteHeader(&cpio.Header{Name: name, Mode: mode, Size: int64(len(text)), Links: 1})
		if failed == nil && len(text) > 0 {
			_, failed = w.Write(text)
		}
	}
	for _, dir := range []string{"dev", "etc", "etc/bragg", "lib", "lib/modules", "proc", "run", "sys", "tmp"} {
		add(dir, cpio.TypeDir|0o755, nil)
	}
	add(guest.ModulesFile[1:], cpio.TypeReg|0o644, list)
	for _, name := range slices.Sorted(maps.Keys(modules.Modules)) {
		add(modules.Modules[name].Path[1:], cpio.TypeReg|0o644, files[name].text)
	}
	add("init", cpio.TypeReg|0o755, agent)
	if failed == nil {
		failed = w.Close()
	}
	if failed != nil {
		return nil, fmt.Errorf("write initramfs: %w", failed)
	}
	return compress(archive.Bytes())
}

// compress uses one thread: with more, the result depends on their number. It uses Zstandard, because a slow guest unpacks
// it faster than gzip even begins.
func compress(text []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("compress initramfs: %w", err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(text, nil), nil
}
