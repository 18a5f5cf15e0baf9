// Package ova packs the disk of a guest as an OVA, the archive that vCenter imports as a template.
//
//	Pack    disk ──▶ stream-optimized disk (package vmdk) ──▶ descriptor, hashes, disk in one archive
//	Convert image of a distribution: qcow2 by qemu-img, or raw ──▶ Pack
//
// The same disk gives the same archive, so that an import of it is found again by its hash.
package ova

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image/vmdk"
)

//go:embed descriptor.ovf
var descriptorText string

var descriptor = template.Must(template.New("descriptor").Funcs(template.FuncMap{"xml": escaped}).Parse(descriptorText))

func escaped(text string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(text))
	return b.String(), err
}

// Machine is the VM that an import makes. Runs give each of its clones CPUs and memory of their own.
type Machine struct {
	Name      string // of the guest; its files are named so
	VCPUs     int    // 0: 1
	MemoryMiB int    // 0: 1024
}

// Pack writes an OVA with one disk, which it reads to its end. The file appears when it is complete.
func Pack(ctx context.Context, m Machine, disk io.Reader, sizeBytes int64, path string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(path), ".bragg-ova-*")
	if err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	packed, err := os.Create(filepath.Join(work, "disk"))
	if err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	defer packed.Close()
	sum := sha256.New()
	if err := vmdk.Write(io.MultiWriter(packed, sum), interruptible{ctx, disk}, sizeBytes); err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	packedBytes, err := packed.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = packed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	text, err := m.describe(sizeBytes, packedBytes)
	if err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	hashes := fmt.Appendf(nil, "SHA256(%s)= %x\nSHA256(%s)= %x\n", m.file(".ovf"), sha256.Sum256(text), m.diskFile(), sum.Sum(nil))
	archive := filepath.Join(work, "archive")
	if err := write(archive, []part{
		{m.file(".ovf"), int64(len(text)), bytes.NewReader(text)},
		{m.file(".mf"), int64(len(hashes)), bytes.NewReader(hashes)},
		{m.diskFile(), packedBytes, interruptible{ctx, packed}},
	}); err != nil {
		return fmt.Errorf("write the OVA: %w", err)
	}
	return os.Rename(archive, path)
}

func (m Machine) file(ending string) string { return m.Name + ending }

func (m Machine) diskFile() string { return m.file("-disk1.vmdk") }

func (m Machine) describe(sizeBytes, packedBytes int64) ([]byte, error) {
	if m.Name == "" || strings.ContainsAny(m.Name, "/\\()\n\r") {
		return nil, fmt.Errorf("invalid name of the guest: %q", m.Name)
	}
	var b bytes.Buffer
	err := descriptor.Execute(&b, map[string]any{
		"Name": m.Name, "Disk": m.diskFile(), "DiskBytes": sizeBytes, "PackedBytes": packedBytes,
		"VCPUs": cmp.Or(m.VCPUs, 1), "MemoryMiB": cmp.Or(m.MemoryMiB, 1024),
	})
	return b.Bytes(), err
}

// part is one file of the archive.
type part struct {
	name  string
	bytes int64
	text  io.Reader
}

// write writes the archive. The descriptor must come first: importers read it before the disk arrives.
func write(path string, parts []part) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, p := range parts {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.name, Size: p.bytes, Mode: 0o644, ModTime: time.Unix(0, 0)})
		if err == nil {
			_, err = io.Copy(w, p.text)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

// interruptible ends with its context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i interruptible) Read(to []byte) (int, error) {
	if err := context.Cause(i.ctx); err != nil {
		return 0, err
	}
	return i.Reader.Read(to)
}

func refused(path, what, hint string) error {
	return &diag.Error{Code: "bad-image", Exit: diag.ExitData, Message: fmt.Sprintf("pack image %q: %s", path, what), Hint: hint}
}
