// Package trust makes the identities of one run: they restrict who may connect to its agents, and prove that an agent is
// that of the intended VM. It is not a general public key infrastructure: an Authority exists as long as the run, in memory
// only, and other runs do not accept its signatures.
//
//	New(run) ──▶ Authority ──▶ Agent(vm)       PEM files for the provider to place on the VM
//	                      └──▶ Controller(vm)  tls.Config that accepts this VM's agent and no other
//	             Server(files) ──▶ tls.Config of the agent, that accepts this run's controller only
//
// Both ends accept only TLS 1.3. A certificate of an agent cannot be used as a controller's, or vice versa: extended key
// usages differ, and both sides check the names.
package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"sync"
	"time"
)

// Names in certificates are URIs, so that no name of a VM can be mistaken for an address: bragg:RUN/controller and
// bragg:RUN/vm/NAME. NAME is in hexadecimal digits, so that the URI is valid for any VM name of a scenario.
const scheme = "bragg"

// clockSkewMax is how far the clock of a VM may be behind or ahead when its certificate is first checked. Guests boot with
// clocks that are wrong by hours.
const clockSkewMax = 26 * time.Hour

// authorityLife limits the use of the authority itself, in case its key ever leaked.
const authorityLife = 90 * 24 * time.Hour

// Authority signs the certificates of one run. Its key is never written to a file.
type Authority struct {
	run         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	pem         []byte

	mu         sync.Mutex
	controller tls.Certificate
	ends       time.Time // of the validity of new certificates
}

// Files are the files that an agent needs, as PEM. Key is secret.
type Files struct {
	Certificate []byte
	Key         []byte
	Authority   []byte
}

// New makes the authority of a run. Its certificates are valid for life from now on.
func New(run string, life time.Duration) (*Authority, error) {
	a := &Authority{run: run, ends: time.Now().Add(authorityLife)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make the authority of run %q: %w", run, err)
	}
	template := a.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make the authority of run %q: %w", run, err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("make the authority of run %q: %w", run, err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, a.Expect(life)
}

// Expect changes the validity of new certificates, once the duration of the run is known. Existing certificates of agents
// keep their end.
func (a *Authority) Expect(life time.Duration) error {
	a.mu.Lock()
	a.ends = time.Now().Add(life + clockSkewMax)
	a.mu.Unlock()
	files, err := a.issue("controller", x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(files.Certificate, files.Key)
	if err != nil {
		return fmt.Errorf("make the controller's certificate: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.controller = pair
	return nil
}

// Agent makes the identity of a VM's agent. Every call makes a new key.
func (a *Authority) Agent(vm string) (Files, error) {
	return a.issue(agentPath(vm), x509.ExtKeyUsageServerAuth)
}

// Controller returns the TLS configuration with which this run's controller connects to the agent of one VM.
func (a *Authority) Controller(vm string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	want := uri(a.run, agentPath(vm))
	a.mu.Lock()
	defer a.mu.Unlock()
	return &tls.Config{
		Certificates: []tls.Certificate{a.controller}, MinVersion: tls.VersionTLS13, ServerName: knock(a.certificate, want),
		// The library can only compare host names, and agents have none: VerifyConnection makes all its checks.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verify(s, pool, x509.ExtKeyUsageServerAuth, want)
		},
	}
}

// Server returns the TLS configuration of the agent with these files: it accepts the controller of the run in its own
// certificate.
func Server(f Files) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read the agent's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(f.Authority) {
		return nil, errors.New("read the authority: no certificate in it")
	}
	run, err := runOf(pair.Leaf)
	if err != nil {
		return nil, err
	}
	want := uri(run, "controller")
	authority, err := certificateOf(f.Authority)
	if err != nil {
		return nil, err
	}
	expected := knock(authority, pair.Leaf.URIs[0].String())
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if subtle.ConstantTimeCompare([]byte(hello.ServerName), []byte(expected)) != 1 {
				return nil, errors.New("the other end does not know this run")
			}
			return nil, nil
		},
		// A resumed session would have an identity that is not checked again.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verify(s, pool, x509.ExtKeyUsageClientAuth, want)
		},
	}, nil
}

// knock is the name under which a controller requests an agent in its first message. It is not an authentication: it lets
// the agent reject strangers before it computes anything for them. Strangers do not know it, because an authority's
// certificate, with its random serial number, is never sent: agents get it from their provider. However, it can be read on
// the network.
func knock(authority *x509.Certificate, agent string) string {
	mac := hmac.New(sha256.New, authority.Raw)
	mac.Write([]byte("knock " + agent))
	return hex.EncodeToString(mac.Sum(nil)[:knockBytes]) + "." + scheme
}

const knockBytes = 16

func certificateOf(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("read the authority: no certificate in it")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	return c, nil
}

func verify(s tls.ConnectionState, pool *x509.CertPool, use x509.ExtKeyUsage, want string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the other end has no certificate")
	}
	leaf := s.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
		return err
	}
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != want {
		return fmt.Errorf("the other end is not %s", want)
	}
	return nil
}

func agentPath(vm string) string { return "vm/" + hex.EncodeToString([]byte(vm)) }

func uri(run, path string) string { return scheme + ":" + url.PathEscape(run) + "/" + path }

// runOf returns the run in a certificate of Bragg.
func runOf(c *x509.Certificate) (string, error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != scheme {
		return "", errors.New("read the agent's certificate: it names no run")
	}
	for i, r := range c.URIs[0].Opaque {
		if r == '/' {
			return url.PathUnescape(c.URIs[0].Opaque[:i])
		}
	}
	return "", errors.New("read the agent's certificate: it names no run")
}

func (a *Authority) template(path string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	name, err := url.Parse(uri(a.run, path))
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "bragg"},
		NotBefore: time.Now().Add(-clockSkewMax), NotAfter: a.ends,
	}
	if err == nil { // always nil: both parts are escaped
		t.URIs = []*url.URL{name}
	}
	return t
}

func (a *Authority) issue(path string, use x509.ExtKeyUsage) (Files, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, fmt.Errorf("make a key: %w", err)
	}
	template := a.template(path)
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{use}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return Files{}, fmt.Errorf("sign a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Files{}, fmt.Errorf("write a key: %w", err)
	}
	return Files{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		Authority:   a.pem,
	}, nil
}
