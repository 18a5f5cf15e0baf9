package bmc

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/braggdev/bragg/internal/target"
)

// Only this file may disable Go's own check of certificates, and only where it checks more (a fingerprint), shows which
// certificate was refused, or where the owner of the target wrote `tls: unverified`.

const caFileBytesMax = 1 << 20

// certificateError says why a certificate was refused, and what to write if it is the right one.
type certificateError struct{ reason, hint string }

func (e *certificateError) Error() string { return e.reason }

// trustOf returns how the certificate of a Redfish service is checked.
func trustOf(b target.BMC, host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: true}
	roots, err := rootsOf(b.CAFile)
	if err != nil {
		return nil, err
	}
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return &certificateError{reason: "it shows no certificate"}
		}
		leaf := s.PeerCertificates[0]
		sum := sha256.Sum256(leaf.Raw)
		shown := hex.EncodeToString(sum[:])
		switch {
		case b.Fingerprint != "":
			if shown != b.Fingerprint {
				return &certificateError{
					reason: fmt.Sprintf("its certificate has the fingerprint %s, and the target file says %s", shown, b.Fingerprint),
					hint:   "the BMC has a new certificate, or there is a man in the middle: compare with the BMC's own page before you change the file",
				}
			}
			return nil
		case b.TLS == target.TLSUnverified:
			return nil
		}
		return verify(s.PeerCertificates, roots, host, shown)
	}
	return c, nil
}

// verify makes the same checks as Go, and names the certificate that was refused.
func verify(chain []*x509.Certificate, roots *x509.CertPool, host, shown string) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host})
	if err == nil {
		return nil
	}
	return &certificateError{
		reason: "its certificate is not trusted: " + quoteOutside(err.Error()),
		hint: fmt.Sprintf("most BMCs sign their own: compare with the BMC's own page, then write fingerprint: %q; or name its authority with ca_file",
			"sha256:"+shown),
	}
}

// rootsOf reads the trusted authorities; nil means those of the system.
func rootsOf(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("ca_file: %q is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, caFileBytesMax))
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca_file %q: %w", path, errors.New("no certificate in PEM"))
	}
	return pool, nil
}
