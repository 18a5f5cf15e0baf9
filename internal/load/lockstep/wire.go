package lockstep

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"time"
)

// SecretBytes is the length of the secret of a load.
const SecretBytes = ed25519.SeedSize

// NewSecret returns the secret of a new load.
func NewSecret() []byte {
	secret := make([]byte, SecretBytes)
	_, _ = rand.Read(secret) // which never fails
	return secret
}

// hostName is that of all certificates: members know a coordinator by its key, not by its name.
const hostName = "lockstep"

// tlsConfig is that of both ends. Key and certificate follow from the secret of the load, and each accepts that one alone.
func tlsConfig(secret []byte) (*tls.Config, error) {
	if len(secret) != SecretBytes {
		return nil, fmt.Errorf("the secret of the barrier has %d bytes instead of %d", len(secret), SecretBytes)
	}
	key := ed25519.NewKeyFromSeed(secret)
	// Times are far apart, because the clocks of VMs are: a load's key ends with the load.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), DNSNames: []string{hostName},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate of the barrier: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read a certificate of the barrier: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: hostName}, nil
}

// Kinds of frames.
const (
	kindJoin  = iota + 1 // number: the rank, text: the VM; its answer: all have joined
	kindStep             // number: the step, values; its answer has sums and minima
	kindBeat             // alive
	kindLeave            // in good order
	kindFail             // text: why
	kindEnd              // one beyond the last
)

// lastOfAll is the text of the answer to the member that came last.
const lastOfAll = "last"

// frame is one message: its kind, number, the numbers of values and of bytes of text, and those.
type frame struct {
	kind   byte
	number uint64
	values []float64
	text   string
}

const (
	headerBytes  = 1 + 8 + 1 + 2
	textBytesMax = 4096
)

func (f frame) append(to []byte) []byte {
	text := f.text[:min(len(f.text), textBytesMax)]
	to = append(to, f.kind)
	to = binary.BigEndian.AppendUint64(to, f.number)
	to = append(to, byte(len(f.values)))
	to = binary.BigEndian.AppendUint16(to, uint16(len(text)))
	for _, v := range f.values {
		to = binary.BigEndian.AppendUint64(to, math.Float64bits(v))
	}
	return append(to, text...)
}

func readFrame(r io.Reader) (f frame, err error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return f, err
	}
	f.kind, f.number = header[0], binary.BigEndian.Uint64(header[1:])
	values, text := int(header[9]), int(binary.BigEndian.Uint16(header[10:]))
	if f.kind == 0 || f.kind >= kindEnd || values > 2*ValuesMax || text > textBytesMax {
		return f, errors.New("not a message of the barrier")
	}
	rest := make([]byte, 8*values+text)
	if _, err := io.ReadFull(r, rest); err != nil {
		return f, err
	}
	for i := range values {
		f.values = append(f.values, math.Float64frombits(binary.BigEndian.Uint64(rest[8*i:])))
	}
	f.text = string(rest[8*values:])
	return f, nil
}
