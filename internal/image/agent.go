package image

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	agentProgram  = "github.com/braggdev/bragg/cmd/bragg-agent"
	agentBytesMax = 64 << 20
)

// agentFile is a program that was verified to be an agent.
type agentFile struct {
	text    []byte
	version string
	source  File
}

// architectures by the machine of ELF files.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// readAgent reads the agent's program and checks whether it can be the only program of a machine.
func readAgent(path, architecture string) (agentFile, error) {
	text, err := readBounded(path, agentBytesMax)
	if err != nil {
		return agentFile{}, badAgent(path, err)
	}
	version, err := checkAgent(text, architecture)
	if err != nil {
		return agentFile{}, badAgent(path, err)
	}
	source, err := describe(filepath.Base(path), bytes.NewReader(text))
	return agentFile{text: text, version: version, source: source}, err
}

func checkAgent(text []byte, architecture string) (version string, err error) {
	program, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("not a Linux program: %w", err)
	}
	defer program.Close()
	if found := architectures[program.Machine]; found != architecture {
		return "", fmt.Errorf("it is for %s, and the kernel for %s", program.Machine, architecture)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("it needs shared libraries, and the image has none: build it with CGO_ENABLED=0")
		}
	}
	info, err := buildinfo.Read(bytes.NewReader(text))
	if err != nil || info.Path != agentProgram {
		return "", errors.New("it is another program")
	}
	version = info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
	}
	return version, nil
}

// readBounded reads a regular file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("it has %d bytes, want at most %d", info.Size(), limit)
	}
	return os.ReadFile(path)
}
