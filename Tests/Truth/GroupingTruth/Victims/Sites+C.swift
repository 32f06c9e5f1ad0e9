// Sites in C and C++.

import CGroupingSites

let cSites: [Site] = [
    Site("C function") { sink += Int(site_c_plain($0)) },
    Site("C function pointer") { sink += Int(site_c_pointer($0)) },
    Site("C comparator") { sink += Int(site_c_comparator($0)) },
    Site("C variadic") { sink += Int(site_c_variadic($0)) },
    Site("C recursive") { sink += Int(site_c_recursive($0)) },
    Site("C switch") { sink += Int(site_c_switch($0)) },
    Site("C++ namespace") { sink += Int(site_cxx_namespace($0)) },
    Site("C++ method") { sink += Int(site_cxx_method($0)) },
    Site("C++ virtual") { sink += Int(site_cxx_virtual($0)) },
    Site(
        "C++ template",
        variants: [
            { sink += Int(site_cxx_template($0, 0)) }, { sink += Int(site_cxx_template($0, 1)) },
        ]),
    Site(
        "C++ template class",
        variants: [
            { sink += Int(site_cxx_template_class($0, 0)) },
            { sink += Int(site_cxx_template_class($0, 1)) },
        ]),
    Site("C++ lambda") { sink += Int(site_cxx_lambda($0)) },
    Site("C++ operator") { sink += Int(site_cxx_operator($0)) },
    Site("C++ constructor") { sink += Int(site_cxx_constructor($0)) },
    Site("C++ anonymous namespace") { sink += Int(site_cxx_anonymous($0)) },
    Site("C++ sort") { sink += Int(site_cxx_sort($0)) },
]
