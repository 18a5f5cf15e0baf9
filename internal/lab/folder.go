package lab

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// folder writes the files of a new lab. One field keeps the first error, after which nothing is written.
type folder struct {
	root string
	err  error
}

func (f *folder) dir(parts ...string) {
	if f.err == nil {
		f.err = os.MkdirAll(filepath.Join(append([]string{f.root}, parts...)...), 0o700)
	}
}

func (f *folder) file(text string, parts ...string) {
	if f.err == nil {
		f.err = os.WriteFile(filepath.Join(append([]string{f.root}, parts...)...), []byte(text), 0o600)
	}
}

// furnish writes everything that does not depend on the lab's addresses.
func furnish(l *Lab, o *Options) error {
	f := &folder{root: l.Dir}
	for _, dir := range [][]string{{"shared", "pool"}, {"shared", "templates"}, {"switch"}, {"hosts"}, {"ssh"}} {
		f.dir(dir...)
	}
	f.file(rand.Text()[:16], filepath.Base(l.BMCPasswordFile()))
	for i := range l.Hosts {
		f.furnishHost(&l.Hosts[i])
	}
	if f.err != nil {
		return fmt.Errorf("make lab %q: %w", l.Name, f.err)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Templates)) {
		t, err := l.copyTemplate(name, o.Templates[name])
		if err != nil {
			return fmt.Errorf("make lab %q: template %q: %w", l.Name, name, err)
		}
		l.Templates = append(l.Templates, t)
	}
	return nil
}

// copyTemplate copies a disk image to the pool, and a folder beside it. libvirt finds the format of an image by itself.
func (l *Lab) copyTemplate(name, from string) (Template, error) {
	info, err := os.Stat(from)
	if err != nil {
		return Template{}, err
	}
	if info.IsDir() {
		to := filepath.Join(l.TemplateDir(), name)
		return Template{name, to}, copyTree(from, to)
	}
	if !info.Mode().IsRegular() {
		return Template{}, fmt.Errorf("%s is neither a file nor a directory", from)
	}
	volume := "template-" + name
	return Template{name, volume}, copyFile(from, filepath.Join(l.PoolDir(), volume))
}

func (f *folder) furnishHost(h *Host) {
	for _, dir := range []string{"run", "etc", "lib", "log", "cache", "tmp", "var-tmp", "home"} {
		f.dir("hosts", h.Name, dir)
	}
	f.dir("hosts", h.Name, "log", "qemu") // libvirt makes it when a guest starts, and not when one arrives
	f.dir("hosts", h.Name, "var-tmp", filepath.Base(sshPool))
	if f.err == nil {
		f.err = errors.Join(os.Chmod(filepath.Join(h.Dir, "tmp"), 0o777|os.ModeSticky),
			os.Chmod(filepath.Join(h.Dir, "var-tmp"), 0o777|os.ModeSticky))
	}
	f.file(strings.ReplaceAll(h.UUID, "-", "")+"\n", "hosts", h.Name, "machine-id")
	f.file(h.Name+"\n", "hosts", h.Name, "hostname")
	f.file(h.UUID+"\n", "hosts", h.Name, "uuid")
	f.file(h.Serial+"\n", "hosts", h.Name, "serial")
}

// addressed writes everything that needs addresses: servers' configurations, certificates, keys and target files.
func addressed(l *Lab) error {
	f := &folder{root: l.Dir}
	for i := range l.Hosts {
		h := &l.Hosts[i]
		f.certify(h)
		f.file(hostsFile(l), "hosts", h.Name, "hosts")
		if l.Libvirt {
			f.file(libvirtdConfig(*h), "hosts", h.Name, "etc", "libvirtd.conf")
			f.file(qemuConfig(*h), "hosts", h.Name, "etc", "qemu.conf")
			f.file(networkXML(), "hosts", h.Name, "network.xml")
			f.file(poolXML(l), "hosts", h.Name, "pool.xml")
		}
	}
	if l.SSH {
		f.keys(l)
	}
	for _, t := range l.TargetFiles() {
		f.file(t.Text, filepath.Base(t.Path))
	}
	if f.err != nil {
		return fmt.Errorf("make lab %q: %w", l.Name, f.err)
	}
	return nil
}

// certify gives a BMC a self-signed certificate, as BMCs have them, to be pinned.
func (f *folder) certify(h *Host) {
	if f.err != nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.err = err
		return
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		f.err = err
		return
	}
	const validYears = 10
	template := x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: h.Name, Organization: []string{"Bragg lab"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(validYears, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{h.BMC.AsSlice()}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		f.err = err
		return
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.err = err
		return
	}
	sum := sha256.Sum256(der)
	h.Fingerprint = hex.EncodeToString(sum[:])
	f.file(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "hosts", h.Name, "bmc.crt")
	f.file(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), "hosts", h.Name, "bmc.key")
}

// keys makes a key for each host and one for the client, and writes who knows whom.
func (f *folder) keys(l *Lab) {
	client := f.key("ssh", "client_key")
	f.file(client, "ssh", "client_key.pub")
	f.file(client, "ssh", "authorized_keys")
	known := ""
	for _, h := range l.Hosts {
		known += h.Address.String() + " " + f.key("hosts", h.Name, "ssh_host_key")
		f.file(sshdConfig(l, h), "hosts", h.Name, "sshd_config")
	}
	f.file(known, "ssh", "known_hosts")
}

// key writes a private key and returns the line of its public one.
func (f *folder) key(parts ...string) string {
	if f.err != nil {
		return ""
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.err = err
		return ""
	}
	block, err := ssh.MarshalPrivateKey(private, "bragg-lab")
	if err != nil {
		f.err = err
		return ""
	}
	f.file(string(pem.EncodeToMemory(block)), parts...)
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		f.err = err
		return ""
	}
	return string(ssh.MarshalAuthorizedKey(key))
}

// copyTree copies a folder of regular files.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.Mkdir(filepath.Join(to, inside), 0o700)
		case e.Type().IsRegular():
			return copyFile(path, filepath.Join(to, inside))
		}
		return fmt.Errorf("%s is not a regular file", path)
	})
}

// copyFile copies by reference where the file system can.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
