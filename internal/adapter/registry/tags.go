package registry

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/adapter/registry/keychain"
	"github.com/lockstep-dev/lockstep/internal/core/tagspec"
)

const (
	// pageSize is what most registries allow. For others smallPage is used.
	pageSize  = 1000
	smallPage = 100
	// maxPages, maxTags and maxPage limit an endless list.
	maxPages = 2000
	maxTags  = 500_000
	maxPage  = 8 << 20
	// fullEvery is how often a list is read from its beginning, although its order would allow
	// starting at a prefix.
	fullEvery = 20
)

// order is the known order of a repository's list of tags.
type order struct {
	// sorted means that the list is sorted by bytes and longer than a page, so starting at a
	// prefix saves requests.
	sorted bool
	// seeks counts the lists since the last full one.
	seeks int
}

// Tags lists the tags of a repository, at least all with the prefix.
func (c *Client) Tags(ctx context.Context, as keychain.Credential, repository tagspec.Repository, prefix string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	h, err := c.host(repository.Host)
	if err != nil {
		return nil, &Error{Kind: Unreachable, What: "tags of " + repository.String(), Answer: "cannot be asked", Cause: err}
	}
	l := &list{client: c, host: h, as: as, repository: repository, what: "tags of " + repository.String(), sorted: true}
	if h.seek(repository.Path, prefix) {
		if err := l.read(ctx, prefix); err == nil && l.sorted {
			return l.tags, nil
		} else if kind := KindOf(err); kind == Limited || kind == Unreachable || kind == Denied {
			return nil, err
		}
		// The registry doesn't know the tag to start after, or its order has changed.
		l.tags, l.pages, l.sorted = nil, 0, true
	}
	if err := l.read(ctx, ""); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.orders[repository.Path] = order{sorted: l.sorted && l.pages > 1}
	h.mu.Unlock()
	return l.tags, nil
}

// MaySeek reports whether the next list of a repository may start at a prefix, and so contain
// only the tags from there on.
func (c *Client) MaySeek(repository tagspec.Repository, prefix string) bool {
	h, err := c.host(repository.Host)
	return err == nil && h.maySeek(repository.Path, prefix)
}

// maySeek reports whether the next list may start at a prefix.
func (h *host) maySeek(path, prefix string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.orders[path]
	return prefix != "" && o.sorted && o.seeks < fullEvery
}

// seek is maySeek, and counts the seek.
func (h *host) seek(path, prefix string) bool {
	if !h.maySeek(path, prefix) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.orders[path]
	o.seeks++
	h.orders[path] = o
	return true
}

// list is a list of tags while it is being read.
type list struct {
	client     *Client
	host       *host
	as         keychain.Credential
	repository tagspec.Repository
	what       string

	tags   []string
	pages  int
	sorted bool
}

// read follows the pages, from the beginning or from a prefix to its end.
func (l *list) read(ctx context.Context, prefix string) error {
	query := l.first(prefix)
	for {
		page, next, err := l.page(ctx, query)
		if l.smaller(err, query) {
			query.Set("n", strconv.Itoa(smallPage))
			continue
		}
		if err != nil {
			return err
		}
		l.pages++
		l.add(page)
		l.client.options.Listed(l.repository.String(), len(l.tags))
		switch {
		case next == nil || prefix != "" && past(page, prefix):
			return nil
		case l.pages >= maxPages || len(l.tags) > maxTags:
			return untrue(l.what, "the list has no end: %d pages with %d tags so far", l.pages, len(l.tags))
		case next.Encode() == query.Encode():
			return untrue(l.what, "page %d of the list names itself as the next one", l.pages)
		}
		query = next
	}
}

func (l *list) first(prefix string) url.Values {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	query := url.Values{"n": {strconv.Itoa(l.host.pageSize)}}
	if len(prefix) > 1 {
		// The list starts after "last", and the tag that equals the prefix may be wanted.
		query.Set("last", prefix[:len(prefix)-1])
	}
	return query
}

// smaller reports whether a registry refused the page size, and remembers it.
func (l *list) smaller(err error, query url.Values) bool {
	if !wasRefused(err, http.StatusBadRequest) || query.Get("n") != strconv.Itoa(pageSize) {
		return false
	}
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	l.host.pageSize = smallPage
	return true
}

func past(page []string, prefix string) bool {
	return len(page) > 0 && page[len(page)-1] > prefix && !strings.HasPrefix(page[len(page)-1], prefix)
}

func (l *list) add(page []string) {
	joined := page
	if len(l.tags) > 0 {
		joined = append([]string{l.tags[len(l.tags)-1]}, page...)
	}
	l.sorted = l.sorted && slices.IsSorted(joined)
	l.tags = append(l.tags, page...)
}

// page reads one page and the query of the next one.
func (l *list) page(ctx context.Context, query url.Values) ([]string, url.Values, error) {
	response, err := l.client.do(ctx, l.as, call{
		what: l.what, kind: TagsRequest, method: http.MethodGet, repository: l.repository, path: "tags/list", query: query, accept: []string{"application/json"},
	})
	if err != nil {
		return nil, nil, err
	}
	defer closeBody(response)
	body, err := readBody(response, maxPage, l.what)
	if err != nil {
		return nil, nil, err
	}
	var answer struct{ Tags []string }
	if json.Unmarshal(body, &answer) != nil {
		return nil, nil, untrue(l.what, "%s sent a list that cannot be read", l.host.name)
	}
	return answer.Tags, nextPage(response.Header), nil
}

// nextPage is the query of the link to the next page. It ignores the link's host and path: some
// registries write them wrongly, and others could redirect credentials elsewhere.
func nextPage(header http.Header) url.Values {
	for _, text := range header.Values("Link") {
		target, parameters, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "<"), ">")
		if !found || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		if u, err := url.Parse(target); err == nil && u.RawQuery != "" {
			return u.Query()
		}
	}
	return nil
}
