package images

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// refusal explains in one line why a registry does not have an image, and what helps.
func (p Pusher) refusal(image Image, err error) error {
	repository := p.Target.repository(image).Name()
	var said *transport.Error
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("push %s: interrupted", repository)
	case errors.As(err, &untrusted):
		return fmt.Errorf("push %s: the registry's certificate is not trusted: %s; SSL_CERT_FILE names a file of further roots", repository, oneLine(untrusted.Err))
	case errors.As(err, &said) && (said.StatusCode == http.StatusUnauthorized || said.StatusCode == http.StatusForbidden):
		return p.denied(repository, said)
	}
	if cause := unreachable(err); cause != nil {
		return fmt.Errorf("push %s: %s cannot be reached: %s", repository, p.Target.Registry(), oneLine(cause))
	}
	return fmt.Errorf("push %s: %s", repository, oneLine(err))
}

// unreachable is why the registry did not answer, without the prefixes of the libraries; nil
// when it answered.
func unreachable(err error) error {
	var network *net.OpError
	var request *url.Error
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &request):
		return request.Err
	}
	return nil
}

func (p Pusher) denied(repository string, said *transport.Error) error {
	status := fmt.Sprintf("%d %s", said.StatusCode, http.StatusText(said.StatusCode))
	if p.anonymous() {
		return fmt.Errorf(`push %s: no credentials for %s (%s): log in with "docker login %s", or name a directory with a config.json in DOCKER_CONFIG`,
			repository, p.Target.Registry(), status, p.Target.Registry())
	}
	return fmt.Errorf("push %s: %s refuses the credentials that the Docker configuration has for it (%s)", repository, p.Target.Registry(), status)
}

func (p Pusher) anonymous() bool {
	found, err := p.Keychain.Resolve(p.Target.controller)
	return err == nil && found == authn.Anonymous
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
