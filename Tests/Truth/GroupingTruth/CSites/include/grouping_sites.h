// Sites in C and C++. Each is a function that a developer would hold responsible; it waits or computes itself.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// How a site stalls.
typedef enum {
    site_leaf_sleep = 0,
    site_leaf_lock = 1,
    site_leaf_cpu = 2,
} site_leaf;

int site_c_plain(site_leaf leaf);
int site_c_pointer(site_leaf leaf);
int site_c_comparator(site_leaf leaf);
int site_c_variadic(site_leaf leaf);
int site_c_recursive(site_leaf leaf);
int site_c_switch(site_leaf leaf);

int site_cxx_namespace(site_leaf leaf);
int site_cxx_method(site_leaf leaf);
int site_cxx_virtual(site_leaf leaf);
int site_cxx_template(site_leaf leaf, int instance);
int site_cxx_template_class(site_leaf leaf, int instance);
int site_cxx_lambda(site_leaf leaf);
int site_cxx_operator(site_leaf leaf);
int site_cxx_constructor(site_leaf leaf);
int site_cxx_anonymous(site_leaf leaf);
int site_cxx_sort(site_leaf leaf);

#ifdef __cplusplus
}
#endif
