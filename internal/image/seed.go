package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
	"golang.org/x/crypto/ssh"

	"github.com/braggdev/bragg/internal/agent"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/guest"
	"github.com/braggdev/bragg/internal/trust"
)

// Guest is what a provider knows about a VM before its first start.
type Guest struct {
	// InstanceID is unique for every VM that was ever made: cloud-init configures each instance once, and the machine-id is
	// derived from it.
	InstanceID string
	VM         string
	// Listen is the address on which the agent accepts the controller, such as ":7401", and MetricsListen the address of
	// its metrics.
	Listen        string
	MetricsListen string
	VCPUs         int   // for metrics
	RAMBytes      int64 // for metrics
	// Identity is the agent's.
	Identity trust.Files
	// Network: empty means DHCP on every interface. Cloud images need the MAC of each: not all of them work without it.
	Network []Link
	// User is created in cloud images, with Keys as the only login. Empty: the image's own user, without a login. A guest
	// of Build has no users.
	User string
	Keys []string // lines of OpenSSH public keys
	// RootKeys log in as root in cloud images, and HostKey is the private key in OpenSSH's format by which their sshd is known; without
	// it sshd makes its own.
	RootKeys []string
	HostKey  string
	// Program is bragg-agent, for cloud images that lack it at ProgramPath. Nil: the seed does not contain it.
	Program []byte
}

// Link is one interface of a VM.
type Link = guest.Link

// Places in cloud images.
const (
	ProgramPath = "/usr/local/bin/bragg-agent"
	configPath  = guest.FilesDir + "/agent.json"
	programFile = "bragg-agent" // on the seed
)

// Files of the agent's identity in a guest.
const (
	certificatePath = guest.FilesDir + "/agent.pem"
	keyPath         = guest.FilesDir + "/agent.key"
	authorityPath   = guest.FilesDir + "/authority.pem"
)

const (
	keysMax    = 64
	pemMax     = 64 << 10
	programMax = agentBytesMax
)

// Seed returns the content of a disk with a VM's identity: an ISO 9660 file system with the label of NoCloud, for guests of
// Build and for cloud images with cloud-init. It contains the agent's key and must be kept as secret.
func Seed(g Guest) ([]byte, error) {
	files, err := SeedFiles(g)
	if err != nil {
		return nil, err
	}
	disk, err := iso(files)
	if err != nil {
		return nil, fmt.Errorf("write seed of VM %q: %w", g.VM, err)
	}
	return disk, nil
}

// SeedLabel is the label of the file system of a seed.
const SeedLabel = guest.VolumeLabel

// SeedFiles returns the files of a seed by name, for platforms that make the disk: its file system must have the label SeedLabel.
func SeedFiles(g Guest) (map[string][]byte, error) {
	document, err := g.document()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write seed of VM %q: %w", g.VM, err)
	}
	files := map[string][]byte{guest.SeedFile: append(text, '\n')}
	if err := g.cloudInit(document, files); err != nil {
		return nil, fmt.Errorf("write seed of VM %q: %w", g.VM, err)
	}
	if g.Program != nil {
		files[programFile] = g.Program
	}
	return files, nil
}

// MachineID derives the machine-id of an instance: unique for every instance, and the same for the same one. It has the
// form of a random UUID, as machine-id(5) requires.
func MachineID(instanceID string) string {
	sum := sha256.Sum256([]byte("bragg machine-id " + instanceID))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return hex.EncodeToString(id)
}

func (g Guest) document() (guest.Seed, error) {
	s := guest.Seed{
		Version: guest.SeedVersion, InstanceID: g.InstanceID, Hostname: guest.Hostname(g.VM),
		MachineID: MachineID(g.InstanceID), Network: g.Network,
		Agent: agent.Config{
			VM: g.VM, Listen: g.Listen, MetricsListen: g.MetricsListen, VCPUs: g.VCPUs, RAMBytes: g.RAMBytes,
			TLS: agent.TLS{Certificate: certificatePath, Key: keyPath, Authority: authorityPath},
		},
		Files: map[string]string{
			certificatePath: string(g.Identity.Certificate), keyPath: string(g.Identity.Key),
			authorityPath: string(g.Identity.Authority),
		},
	}
	if err := errors.Join(s.Check(), g.check()); err != nil {
		return s, &diag.Error{
			Code: "bad-guest", Message: fmt.Sprintf("write seed of VM %q", g.VM), Err: err, Exit: diag.ExitData,
		}
	}
	return s, nil
}

// check reports all errors that only concern making a seed. It shows no key.
func (g Guest) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for name, text := range map[string][]byte{
		"certificate": g.Identity.Certificate, "key": g.Identity.Key, "authority": g.Identity.Authority,
	} {
		if len(text) == 0 || len(text) > pemMax {
			fault("the agent's %s has %d bytes, want 1 to %d", name, len(text), pemMax)
		}
	}
	if g.User != "" && !validUser(g.User) {
		fault("user %q: want a lower-case letter, then at most 31 lower-case letters, digits, dashes and underscores", g.User)
	}
	if g.User == "" && len(g.Keys) > 0 {
		fault("there are keys without a user")
	}
	if len(g.Keys) > keysMax {
		fault("%d keys, want at most %d", len(g.Keys), keysMax)
	}
	for i, line := range slices.Concat(g.Keys, g.RootKeys) {
		if !validKey(line) {
			fault("key %d: want one line with an OpenSSH public key, without options", i+1)
		}
	}
	if len(g.Program) > programMax {
		fault("the agent's program has %d bytes, want at most %d", len(g.Program), programMax)
	}
	return errors.Join(faults...)
}

func validUser(name string) bool {
	if len(name) > 32 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return false
	}
	return name[0] >= 'a' && name[0] <= 'z'
}

func validKey(line string) bool {
	if strings.ContainsAny(line, "\r\n\x00") {
		return false
	}
	_, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	return err == nil && len(options) == 0 && len(rest) == 0
}

// isoBytesSpare is more than the structures of a small ISO 9660 file system need in addition to the files.
const isoBytesSpare = 1 << 20

// iso makes a file system of files in one folder. The library uses a temporary folder that only this user can read.
func iso(files map[string][]byte) (disk []byte, err error) {
	dir, err := os.MkdirTemp("", "bragg-seed-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	workspace := filepath.Join(dir, "files")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return nil, err
	}
	size := int64(isoBytesSpare)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(workspace, name), text, 0o600); err != nil {
			return nil, err
		}
		size += int64(len(text)) + 2048
	}
	path := filepath.Join(dir, "disk")
	storage, err := file.CreateFromPath(path, size)
	if err != nil {
		return nil, err
	}
	defer storage.Close()
	system, err := iso9660.Create(storage, size, 0, 2048, workspace)
	if err != nil {
		return nil, err
	}
	if err := system.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: guest.VolumeLabel}); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
