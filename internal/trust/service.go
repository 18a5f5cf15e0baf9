package trust

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/braggdev/bragg/internal/textio"
)

// Only this file may disable Go's own check of certificates of services, and only where it checks more (a fingerprint), shows
// which certificate was refused, or where the owner of the target wrote `tls: unverified`.

const caFileBytesMax = 1 << 20

// reasonRunesMax bounds what a certificate can add to a message.
const reasonRunesMax = 300

// Service says how the certificate of a management service is checked: a BMC, vCenter, Prism, a storage array.
type Service struct {
	Name        string // for hints, with an article where one is needed: "the BMC", "vCenter"
	Fingerprint string // SHA-256 of the only accepted certificate, in lower-case hex
	CAFile      string // PEM of the authority that signed it; "": those of this system
	Unverified  bool   // accepts any certificate: reports say so
}

// CertificateError says why a certificate was refused, and what to write if it is the right one.
type CertificateError struct{ Reason, Hint string }

func (e *CertificateError) Error() string { return e.Reason }

// ClientConfig returns the TLS configuration of connections to the service at host. Their errors may be a *CertificateError.
func (s Service) ClientConfig(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: true}
	roots, err := rootsOf(s.CAFile)
	if err != nil {
		return nil, err
	}
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return &CertificateError{Reason: "it shows no certificate"}
		}
		sum := sha256.Sum256(state.PeerCertificates[0].Raw)
		shown := hex.EncodeToString(sum[:])
		switch {
		case s.Fingerprint != "" && shown != s.Fingerprint:
			return &CertificateError{
				Reason: fmt.Sprintf("its certificate has the fingerprint %s, and the target file says %s", shown, s.Fingerprint),
				Hint:   fmt.Sprintf("the certificate of %s was renewed, or the connection is intercepted: compare with what a browser shows before you change the file", s.Name),
			}
		case s.Fingerprint != "" || s.Unverified:
			return nil
		}
		return s.verify(state.PeerCertificates, roots, host, shown)
	}
	return c, nil
}

// verify makes the same checks as Go, and names the certificate that was refused.
func (s Service) verify(chain []*x509.Certificate, roots *x509.CertPool, host, shown string) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host})
	if err == nil {
		return nil
	}
	return &CertificateError{
		Reason: "its certificate is not trusted: " + textio.Clip(textio.Line(err.Error()), reasonRunesMax),
		Hint: fmt.Sprintf("if the certificate of %s is self-signed: compare with what a browser shows, then write fingerprint: %q; otherwise name its authority with ca_file",
			s.Name, "sha256:"+shown),
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
