package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

const (
	// maxSecretFile limits the size of the secrets file.
	maxSecretFile = 64 << 10
	// shortestSecret cannot be guessed at the pace of an HTTP endpoint.
	shortestSecret = 16

	// signatureHeader is how GitHub sends "sha256=" and the HMAC of the body.
	signatureHeader = "X-Hub-Signature-256"
	signaturePrefix = "sha256="
)

// Secrets are shared with the senders of notifications. Each sender may have its own, and a new
// secret works beside the old one until all senders use it.
type Secrets [][]byte

// ReadSecrets reads a file with one secret on each line. Its errors don't quote them.
func ReadSecrets(path string) (Secrets, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSecretFile))
	if err != nil {
		return nil, err
	}
	var all Secrets
	for line := range strings.Lines(string(text)) {
		secret := strings.TrimSpace(line)
		switch {
		case secret == "":
		case len(secret) < shortestSecret:
			return nil, fmt.Errorf("%s: a secret is shorter than %d characters", path, shortestSecret)
		default:
			all = append(all, []byte(secret))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it does not contain a secret: write one on each line", path)
	}
	return all, nil
}

// have reports whether a token is one of the secrets, in a time that doesn't depend on how much
// of it is right.
func (s Secrets) have(token string) bool {
	sum, found := sha256.Sum256([]byte(token)), false
	for _, secret := range s {
		wanted := sha256.Sum256(secret)
		found = hmac.Equal(sum[:], wanted[:]) || found
	}
	return found
}

// signed reports whether a body was signed with one of the secrets.
func (s Secrets) signed(body []byte, signature string) bool {
	text, found := strings.CutPrefix(signature, signaturePrefix)
	given, err := hex.DecodeString(text)
	if !found || err != nil {
		return false
	}
	genuine := false
	for _, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		genuine = hmac.Equal(given, mac.Sum(nil)) || genuine
	}
	return genuine
}

// tokenOf is the secret in a request: at the end of its path, or as a bearer token.
func tokenOf(r *http.Request) string {
	if token := r.PathValue("token"); token != "" {
		return token
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
