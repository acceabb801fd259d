package ui

import (
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the files
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

//go:embed static/ui.css
var stylesheet string

//go:embed static/ui.js
var script string

// morph is a library that changes a page into another one and keeps focus and scroll position.
//
//go:embed static/idiomorph.min.js
var morph string

//go:embed static/favicon.svg
var icon string

// file is what a page loads besides itself.
type file struct {
	// address contains a hash of the content, so a browser may keep the file for ever.
	address, kind, content string
}

// staticFiles are the files by their names.
func staticFiles() map[string]file {
	files := map[string]file{
		"ui.css":           {kind: "text/css", content: stylesheet},
		"ui.js":            {kind: "text/javascript", content: script},
		"idiomorph.min.js": {kind: "text/javascript", content: morph},
		"favicon.svg":      {kind: "image/svg+xml", content: icon},
	}
	for name, f := range files {
		sum := sha256.Sum256([]byte(f.content))
		f.address = "/static/" + hex.EncodeToString(sum[:6]) + "/" + name
		files[name] = f
	}
	return files
}

func (s *Server) serveStatic(w http.ResponseWriter, r *http.Request) {
	f, found := s.files[r.PathValue("name")]
	if !found || f.address != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	w.Header().Set("Content-Type", f.kind+"; charset=utf-8")
	_, _ = io.WriteString(w, f.content) // The browser may have left.
}

// compressed compresses answers for browsers that can read that.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		to, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // The level is valid.
		next.ServeHTTP(compressor{w, to}, r)
		_ = to.Close() // The browser may have left.
	})
}

// compressor writes the body compressed.
type compressor struct {
	http.ResponseWriter

	to io.Writer
}

func (c compressor) Write(p []byte) (int, error) { return c.to.Write(p) }
