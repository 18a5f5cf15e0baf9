package ova

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image/vmdk"
	"github.com/braggdev/bragg/internal/textio"
)

// saidRunesMax bounds what qemu-img adds to a message.
const saidRunesMax = 300

// Convert packs an image file. A qcow2 image is unpacked beside the OVA first, with qemu-img.
func Convert(ctx context.Context, m Machine, file, path string) (err error) {
	compressed, err := isQcow2(file)
	if err != nil {
		return &diag.Error{Code: "unreadable-file", Exit: diag.ExitData, Message: "pack an image", Err: err}
	}
	raw := file
	if compressed {
		work, err := os.MkdirTemp(filepath.Dir(path), ".bragg-raw-*")
		if err != nil {
			return fmt.Errorf("pack image %q: %w", file, err)
		}
		defer os.RemoveAll(work)
		raw = filepath.Join(work, "disk")
		if err := unpack(ctx, file, raw); err != nil {
			return err
		}
	}
	f, err := os.Open(raw)
	if err != nil {
		return fmt.Errorf("pack image %q: %w", file, err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = bootable(f, size, file)
	}
	if err != nil {
		return err
	}
	return Pack(ctx, m, io.NewSectionReader(f, 0, size), size, path)
}

func isQcow2(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(head[:], []byte("QFI\xfb")), nil
}

func unpack(ctx context.Context, file, raw string) error {
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		return &diag.Error{
			Code: "program-missing", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("pack image %q: no qemu-img on this machine, which unpacks qcow2", file),
			Hint: "apt-get install qemu-utils, or give a raw image",
		}
	}
	out, err := exec.CommandContext(ctx, tool, "convert", "-f", "qcow2", "-O", "raw", file, raw).CombinedOutput()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	if err != nil {
		return refused(file, textio.Clip(textio.Line(strings.TrimSpace(string(out))), saidRunesMax), "qemu-img check shows whether it is damaged")
	}
	return nil
}

// bootable wants a disk with the mark of a boot sector: anything else is not the disk of a guest.
func bootable(f io.ReaderAt, size int64, file string) error {
	var sector [vmdk.SectorBytes]byte
	if _, err := f.ReadAt(sector[:], 0); size%vmdk.SectorBytes != 0 || err != nil || sector[510] != 0x55 || sector[511] != 0xaa {
		return refused(file, "not the raw or qcow2 image of a disk with a boot sector", "bragg image build --with PACKAGES makes one")
	}
	return nil
}
